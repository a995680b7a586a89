// Finished rows, kept in tests/accuracy/results.json in the order of the table, and web/docs/accuracy.md that is made of them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { guideOf, guidePath } from './guide.mjs';
import { rows } from './rows.mjs';

const file = join(root, 'tests/accuracy/results.json');

/** {rows: [{name, date, versions, bytes, seconds, numbers by their names in Divergence}]}. */
export const recorded = () => JSON.parse(readFileSync(file, 'utf8'));

/** Replaces the row of that name. */
export function keep(found) {
  const made = new Map(recorded().rows.map((row) => [row.name, row]));
  made.set(found.name, { ...found, date: new Date().toISOString().slice(0, 10) });
  const results = { rows: rows.flatMap(({ name }) => made.get(name) ?? []) };
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(guidePath, guideOf(results));
}
