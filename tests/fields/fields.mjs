// npm run fields [-- --dialect NAME] [--field TEXT] [--json] [--write] [--dropped]: what becomes of every field of every dialect's configs, found by
// trying. `--write` makes web/docs/fields.md. `--dropped` counts and names those that are read and not applied; exit code 1 if one
// is without a word.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../setup/command.mjs';
import { isDropped, isNotApplied, probeAll, withProber } from './probe.mjs';
import { dialects } from './schema_fields.mjs';
import { guideOf, labels } from './table.mjs';

const { values } = parseArgs({
  options: {
    dialect: { type: 'string' },
    field: { type: 'string' },
    json: { type: 'boolean' },
    write: { type: 'boolean' },
    dropped: { type: 'boolean' },
  },
});

const textOf = ({ value, code }) => [JSON.stringify(value), code].filter(Boolean).join(' ');

const chosen = values.dialect ? [values.dialect] : dialects;
const table = await withProber((prober) => probeAll(prober, chosen, values.field));
if (values.dropped)
  for (const [dialect, rows] of Object.entries(table)) {
    const dropped = rows.filter((row) => isDropped(row) && !labels.includes(row.path));
    const warned = rows.filter(isNotApplied);
    process.stdout.write(
      `${dialect}: ${rows.length} fields; read and dropped: ${dropped.length}; not applied, with a warning: ${warned.length}\n`,
    );
    for (const { path, silent } of dropped) process.stdout.write(`    ${path}: ${silent.map(textOf).join(', ')}\n`);
    for (const { path, remark } of warned) process.stdout.write(`    ${path}: ${remark.map(textOf).join(', ')}\n`);
    if (dropped.length > 0) process.exitCode = 1;
  }
else if (values.write) writeFileSync(join(root, 'web/docs/fields.md'), guideOf(table));
else if (values.json) process.stdout.write(`${JSON.stringify(table, null, 1)}\n`);
else
  for (const [dialect, rows] of Object.entries(table))
    for (const { path, values: _, ...outcomes } of rows) {
      const texts = Object.entries(outcomes)
        .filter(([, list]) => list.length > 0)
        .map(([name, list]) => `${name}: ${list.map(textOf).join(', ')}`);
      process.stdout.write(`${dialect} ${path}\n    ${texts.join('\n    ') || 'not tried'}\n`);
    }
