// Finished rows, kept in tests/accuracy/results.json in the order of the table, and what is made of them: web/docs/accuracy.md and the
// tables of size and loss in web/docs/run.
//   node tests/accuracy/record.mjs        writes those again
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { guideOf, guidePath, pagesWithLossTables, withLossTables } from './guide.mjs';
import { rows } from './rows.mjs';

const file = join(root, 'tests/accuracy/results.json');

/** {rows: [{name, date, versions, bytes, seconds, numbers by their names in Divergence}]}. */
export const recorded = () => JSON.parse(readFileSync(file, 'utf8'));

function writeGuides(results) {
  writeFileSync(guidePath, guideOf(results));
  for (const page of pagesWithLossTables()) writeFileSync(page, withLossTables(readFileSync(page, 'utf8'), results));
}

/** Replaces the row of that name. */
export function keep(found) {
  const made = new Map(recorded().rows.map((row) => [row.name, row]));
  made.set(found.name, { ...found, date: new Date().toISOString().slice(0, 10) });
  const results = { rows: rows.flatMap(({ name }) => made.get(name) ?? []) };
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  writeGuides(results);
}

if (process.argv[1] === import.meta.filename) writeGuides(recorded());
