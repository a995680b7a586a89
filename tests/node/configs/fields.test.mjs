// No field of a config is read and dropped: each is set alone, and is seen in the result or in a diagnostic. None is lost in a
// conversion unsaid.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { convertible, unsaidLosses } from '../../fields/conversions.mjs';
import { isDropped, isNotApplied, probeAll, withProber } from '../../fields/probe.mjs';
import { dialects } from '../../fields/schema_fields.mjs';
import { guideOf, labels } from '../../fields/table.mjs';

let table;
const unsaid = {};
before(() =>
  withProber(async (prober) => {
    table = await probeAll(prober);
    for (const dialect of convertible) unsaid[dialect] = await unsaidLosses(prober, dialect);
  }),
);

test('every field of every dialect changes the result, or a diagnostic names it', () => {
  for (const dialect of dialects) {
    assert.ok(table[dialect].length >= 8, dialect);
    const dropped = table[dialect].filter((row) => isDropped(row) && !labels.includes(row.path));
    assert.deepEqual(
      dropped.map(({ path, silent }) => `${path}: ${JSON.stringify(silent.map(({ value }) => value))}`),
      [],
      dialect,
    );
  }
});

test('no field of AMD Quark or Brevitas is read but not applied: an unsupported one is refused', () => {
  for (const dialect of ['quark', 'brevitas'])
    assert.deepEqual(
      table[dialect].filter(isNotApplied).map(({ path }) => path),
      [],
      dialect,
    );
});

for (const dialect of convertible)
  test(`${dialect}: a conversion keeps the plan, or names what is lost`, () => {
    assert.deepEqual(unsaid[dialect], []);
  });

test('a field without any effect would be found', () => {
  const row = { applied: [], refused: [], remark: [], silent: [{ value: 1, code: '' }] };
  assert.ok(isDropped(row));
  assert.ok(!isDropped({ ...row, remark: [{ value: 2, code: 'key-ignored' }] }));
  assert.ok(isNotApplied({ ...row, applied: [{ value: 1, code: '' }], remark: [{ value: 2, code: 'not-applied' }] }));
  const words = { ...row, applied: [{ value: 'a', code: '' }], values: ['a', 'b', 'c', 'd'] };
  assert.ok(!isDropped({ ...words, silent: [{ value: 'b', code: '' }] }), 'the default of an enumeration');
  assert.ok(isDropped({ ...words, silent: [{ value: 'b' }, { value: 'c' }] }));
});

/** Of each class of config in the published types: the dialect, and what the types say of each key. */
function publishedKeys() {
  const types = readFileSync(join(import.meta.dirname, '../../../dist/generated/config_types.d.ts'), 'utf8');
  const dialectOf = (name) =>
    ['Aihwkit', 'Brevitas', 'Gguf'].find((start) => name.startsWith(start))?.toLowerCase() ?? 'quark';
  return [...types.matchAll(/export interface (\w+)[^{]*\{([\s\S]*?)\n\}/g)].flatMap(([, name, body]) =>
    [...body.matchAll(/\/\*\*([\s\S]*?)\*\/\s*'?([$\w]+)'?\??:/g)].map(([, text, key]) => ({
      dialect: dialectOf(name),
      key,
      text: text.replaceAll(/\s*\n\s*\*\s*/g, ' ').trim(),
    })),
  );
}

test('published types say of a key that it does nothing exactly if it does nothing', () => {
  const says = /\b(no effect|ignored|not applied|without effect|not quantized here)\b|Accepted/;
  const keys = publishedKeys();
  assert.ok(keys.length > 80, `${keys.length} keys`);
  const wrong = [];
  for (const { dialect, key, text } of keys) {
    const rows = table[dialect].filter(({ path }) => path.split('.').at(-1) === key);
    const isApplied = rows.some(({ applied }) => applied.length > 0);
    const isRemarked = rows.some(({ remark }) => remark.some(({ code }) => code === 'no-effect'));
    if (isApplied && says.test(text)) wrong.push(`${dialect}.${key} is applied: "${text}"`);
    if (isRemarked && !isApplied && !says.test(text)) wrong.push(`${dialect}.${key} has no effect: "${text}"`);
  }
  assert.deepEqual(wrong, []);
});

test('the guide has the current table: npm run fields -- --write', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../../web/docs/fields.md'), 'utf8');
  assert.equal(guide, guideOf(table));
});
