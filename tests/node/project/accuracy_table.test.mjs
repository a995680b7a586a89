// web/docs/accuracy.md is made of what `npm run accuracy` found.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { guideOf, guidePath, pagesWithLossTables, withLossTables } from '../../accuracy/guide.mjs';
import { recorded } from '../../accuracy/record.mjs';
import { rows } from '../../accuracy/rows.mjs';

test('web/docs/accuracy.md matches tests/accuracy/results.json', () => {
  assert.equal(readFileSync(guidePath, 'utf8'), guideOf(recorded()));
});

test('the figures in web/docs/run match tests/accuracy/results.json: node tests/accuracy/record.mjs', () => {
  const known = new Set(rows.map(({ model, preset, algorithms }) => `${model} ${[preset, ...algorithms].join('+')}`));
  for (const page of pagesWithLossTables()) {
    const text = readFileSync(page, 'utf8');
    assert.equal(text, withLossTables(text, recorded()), page);
    for (const [, model, schemes] of text.matchAll(/<!-- accuracy: (\w+) (.*) -->/g))
      for (const scheme of schemes.split(' ')) assert.ok(known.has(`${model} ${scheme}`), `${page}: ${scheme}`);
  }
});

test('every kept row belongs to the table, in its order, with date, versions and size', () => {
  const names = rows.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const kept = recorded().rows;
  const places = kept.map(({ name }) => names.indexOf(name));
  assert.ok(!places.includes(-1));
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
  for (const { name, date, versions, bytes } of kept) {
    assert.match(date, /^\d{4}-\d\d-\d\d$/, name);
    assert.ok(versions.length > 0 && bytes > 0, name);
  }
});
