// Tables of the command line fit the terminal: prose is cut first, then columns are dropped, then names are cut in the middle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from './web_module.mjs';

const colors = { dim: (text) => text };
const rows = [
  { name: `model.layers.0.${'mlp.'.repeat(20)}down_proj.weight`, size: '295 kB', why: 'because '.repeat(30) },
  { name: `model.layers.0.${'mlp.'.repeat(20)}up_proj.weight`, size: '4.10 kB', why: 'a short reason' },
];
const columns = [
  { title: 'tensor', cell: (row) => row.name },
  { title: 'class', cell: () => 'Linear', spare: 1 },
  { title: 'size', align: 'right', cell: (row) => row.size },
  { title: 'why', cell: (row) => row.why, prose: true },
];

test('every line fits the terminal and can be told from the others', async (t) => {
  const { table } = await moduleOf(t, 'cli/tables.ts');
  for (const width of [60, 80, 100, 110, 120, 200]) {
    const lines = table(rows, columns, { colors, columns: width, indent: 2 });
    for (const line of lines) assert.ok([...line].length <= width, `${width}: ${line}`);
    assert.equal(lines.length, 1 + rows.length);
    const [, first, second] = lines;
    for (const [line, { size }] of [
      [first, rows[0]],
      [second, rows[1]],
    ])
      assert.ok(line.includes(size), `${width}: sizes are never cut: ${line}`);
    assert.match(first, /^ {2}model\..*weight /, `${width}: both ends of a name`);
    assert.notEqual(first, second);
  }
});

test('without a terminal nothing is truncated', async (t) => {
  const { table } = await moduleOf(t, 'cli/tables.ts');
  const lines = table(rows, columns, { colors, columns: Number.POSITIVE_INFINITY });
  for (const [at, { name, why }] of rows.entries()) {
    assert.ok(lines[at + 1].includes(name));
    assert.ok(lines[at + 1].includes(why.trim()));
  }
});
