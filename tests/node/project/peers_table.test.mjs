// What the guides say of other tools is what `npm run test:peers` found.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guidesOf } from '../../peers/guide.mjs';
import { merged, recorded } from '../../peers/record.mjs';

test('web/docs/peers.md and the table of runtimes in web/docs/formats.md match tests/peers/results.json', () => {
  for (const { path, found, wanted } of guidesOf(recorded())) assert.equal(found, wanted, path);
});

test('no row of a peer failed', () => {
  const rows = recorded().rows;
  for (const { what, cases, failed } of rows) {
    assert.ok(!failed, what);
    assert.deepEqual(
      (cases ?? []).filter(({ outcome }) => outcome === 'failed').map(({ name }) => name),
      [],
      what,
    );
  }
});

const names = ['first', 'second'];
const of = (peer, what, rest) => ({ peer, what, ...rest });

test('a run of one peer replaces its rows and keeps those of the others', () => {
  const former = [
    of('first', 'a', { passed: 1 }),
    of('first', 'gone', { passed: 1 }),
    of('second', 'b', { passed: 2 }),
  ];
  const rows = merged(former, [of('first', 'a', { passed: 3 })], 'first', { isPart: false, names });
  assert.deepEqual(rows, [of('first', 'a', { passed: 3 }), former[2]]);
});

test('a run of some cases replaces those, in their places, and keeps the others', () => {
  const [x, y, z] = ['x', 'y', 'z'].map((name) => ({ name, date: 'then' }));
  const former = [of('second', 'loads', { cases: [x, y] }), of('second', 'chains', { passed: 5 })];
  const made = [of('second', 'loads', { cases: [{ ...y, date: 'now' }, z] })];
  const [loads, chains] = merged(former, made, 'second', { isPart: true, names });
  assert.deepEqual(loads.cases, [x, { ...y, date: 'now' }, z]);
  assert.equal(chains, former[1]);
  const none = merged(former, [of('second', 'loads', { cases: [] })], 'second', { isPart: true, names });
  assert.deepEqual(none, former);
});
