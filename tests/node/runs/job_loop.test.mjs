// The loop that hands out jobs: which failure a run ends with.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failure } from '../../../dist/api/errors.js';
import { dispatch } from '../../../dist/pool/job_loop.js';
import { Schedule } from '../../../dist/pool/job_queue.js';

const items = Array.from({ length: 9 }, (_, at) => ({
  name: `t${at}`,
  bytes: 2 ** 20,
  tiles: 1,
  task: { quantize: { work: 0, task: 0 }, observePasses: 0, observedInParts: false, joinedTiles: 0 },
  merge: () => new Uint8Array(),
}));
const sink = { accept() {}, hasRoom: () => true, changed: () => new Promise(() => {}) };

/** A pool whose jobs take so many turns, and end with an error where `errors` has one. Says which were aborted. */
function poolOf(turns, errors) {
  const aborted = [];
  const run = async (_, { parts: [{ item }] }, signal) => {
    for (let turn = 0; turn < turns(item); ++turn) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      if (signal.aborted) aborted.push(item);
      signal.throwIfAborted();
    }
    if (errors[item]) throw errors[item];
    return { parts: [{ sums: new Float64Array(), state: null }], pieces: [], written: [] };
  };
  return { run, aborted };
}

const dispatched = (pool, workers, signal) =>
  dispatch(pool, {}, new Schedule(items, 2 ** 20), workers, sink, () => {}, signal);

test('of several failing weights the first is reported, whichever worker is faster', async () => {
  const errors = Object.fromEntries([2, 3, 5, 7].map((at) => [at, failure('value-overflow', `t${at}`, 'too large')]));
  for (const turns of [(item) => item + 1, (item) => 10 - item, (item) => (item % 3) + 1])
    for (const workers of [1, 2, 4, 9])
      await assert.rejects(dispatched(poolOf(turns, errors), workers), { code: 'value-overflow', where: 't2' });
});

test('jobs after the failure are dropped, jobs before it are finished', async () => {
  const pool = poolOf((item) => (item === 4 ? 1 : 5), { 4: failure('value-not-finite', 't4', 'NaN') });
  await assert.rejects(dispatched(pool, 9), { where: 't4' });
  assert.deepEqual(pool.aborted, [5, 6, 7, 8]);
});

test('any other failure ends the run at once, also after a failure of values', async () => {
  for (const values of [{}, { 6: failure('value-overflow', 't6', 'too large') }]) {
    const pool = poolOf((item) => (item < 3 ? 50 : item === 6 ? 2 : item), {
      ...values,
      7: undefined,
      5: failure('read-failed', 'f', 'gone'),
    });
    await assert.rejects(dispatched(pool, 9), { code: 'read-failed' });
    assert.ok([0, 1, 2].every((item) => pool.aborted.includes(item)));
  }
});

test('an abort takes precedence', async () => {
  const controller = new AbortController();
  const pool = poolOf((item) => (item === 1 ? 1 : 1000), { 1: failure('value-overflow', 't1', 'too large') });
  setTimeout(() => controller.abort(new Error('enough')), 20);
  await assert.rejects(dispatched(pool, 2, controller.signal), /enough/);
});
