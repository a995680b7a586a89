// From tasks to jobs, from reads to requests, from a budget to sizes: the arithmetic between the plan and the workers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planMemory } from '../../../dist/engine/memory.js';
import { Schedule } from '../../../dist/pool/job_queue.js';
import { ErrorSums } from '../../../dist/pool/report.js';
import { spansOf } from '../../../dist/worker/tile_read.js';

const item = (name, bytes, tiles, observePasses = 0, observedInParts = true, joinedTiles = 0) => ({
  name,
  bytes,
  tiles,
  task: { quantize: { work: 0, task: 0 }, observePasses, observedInParts, joinedTiles },
  merge: (states) => Uint8Array.from(states.flatMap((state) => [...state])),
});
const parts = (job) => job.parts.map(({ kind, item: number, first, last }) => `${kind} ${number} ${first}-${last}`);
const result = (job, sums = []) => ({
  parts: job.parts.map((part) => ({
    sums: Float64Array.from(sums),
    state: part.kind === 'observe' ? Uint8Array.of(part.first) : null,
  })),
  pieces: [],
  written: [],
});

test('small tensors share a job, large ones are cut into ranges', () => {
  const schedule = new Schedule([item('a', 10, 1), item('b', 20, 2), item('big', 100, 10), item('c', 5, 1)], 40);
  const jobs = [];
  for (let job = schedule.next(); job; job = schedule.next()) jobs.push(job);
  assert.deepEqual(jobs.map(parts), [
    ['run 0 0-1', 'run 1 0-2'],
    ['run 2 0-4'],
    ['run 2 4-8'],
    ['run 2 8-10'],
    ['run 3 0-1'],
  ]);
  assert.equal(jobs[0].label, 'a and 1 more');
  for (const job of jobs.reverse()) {
    assert.equal(schedule.done, false);
    schedule.complete(job, result(job));
  }
  assert.equal(schedule.done, true);
});

test('every tile of small, large and joined weights is quantized once', () => {
  let state = 17;
  const below = (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  for (let round = 0; round < 500; ++round) {
    const items = Array.from({ length: 1 + below(8) }, (_, at) => {
      const [tiles, passes] = [below(4), below(3)];
      return item(`x${at}`, tiles * (1 + below(40)), tiles, passes, below(2) === 0, passes > 0 ? below(4) : 0);
    });
    const schedule = new Schedule(items, 50);
    const seen = items.map(({ tiles }) => Array(tiles).fill(0));
    for (let job = schedule.next(); job; job = schedule.next()) {
      for (const { kind, item: number, first, last } of job.parts)
        for (let tile = first; kind !== 'observe' && tile < Math.min(last, items[number].tiles); ++tile)
          seen[number][tile] += 1;
      schedule.complete(job, result(job));
    }
    const told = JSON.stringify(items);
    assert.ok(schedule.done, told);
    assert.deepEqual(
      seen,
      items.map(({ tiles }) => Array(tiles).fill(1)),
      told,
    );
  }
});

test('among several workers the last jobs are smaller, down to a mebibyte', () => {
  const mebibyte = 2 ** 20;
  const items = Array.from({ length: 8 }, (_, at) => item(`x${at}`, 64 * mebibyte, 64));
  const schedule = new Schedule(items, 64 * mebibyte, 2);
  const sizes = [];
  for (let job = schedule.next(); job; job = schedule.next()) sizes.push(job.bytes / mebibyte);
  assert.equal(sizes[0], 64);
  assert.equal(sizes.at(-1), 16);
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    512,
  );
  assert.deepEqual(
    sizes,
    [...sizes].sort((a, b) => b - a),
  );
});

test('a slow worker gets fewer jobs, and none waits for it at the end', async () => {
  const mebibyte = 2 ** 20;
  const items = Array.from({ length: 8 }, (_, at) => item(`x${at}`, 64 * mebibyte, 64));
  const schedule = new Schedule(items, 64 * mebibyte, 2);
  const done = [0, 0];
  const free = [0, 0]; // when each worker is free again, by a clock of its own: the second takes three times as long
  for (let job = schedule.next(); job; job = schedule.next()) {
    const worker = free[0] <= free[1] ? 0 : 1;
    free[worker] += job.bytes * (worker === 0 ? 1 : 3);
    done[worker] += job.bytes;
    schedule.complete(job, result(job));
  }
  assert.ok(schedule.done);
  assert.ok(done[0] > 2.4 * done[1], `${done}`);
  assert.ok(Math.abs(free[0] - free[1]) < 0.13 * Math.max(...free), `${free}`);
});

test('two passes: all tiles are observed, states merged in order, then quantized', () => {
  const schedule = new Schedule([item('big', 100, 10, 1), item('next', 8, 1, 1)], 50);
  const observe = [schedule.next(), schedule.next()];
  assert.deepEqual(observe.map(parts), [['observe 0 0-5'], ['observe 0 5-10']]);
  const next = schedule.next();
  assert.deepEqual(parts(next), ['observe-and-run 1 0-1']);
  assert.equal(schedule.next(), null, 'the rest waits');
  assert.equal(schedule.complete(observe[1], result(observe[1])).phase, 'read');
  assert.equal(schedule.next(), null);
  schedule.complete(observe[0], result(observe[0]));
  const quantize = [schedule.next(), schedule.next()];
  assert.deepEqual(quantize.map(parts), [['run 0 0-5'], ['run 0 5-10']]);
  assert.deepEqual(quantize[0].parts[0].state, Uint8Array.of(0, 5));
  let bytes = 0;
  for (const job of [next, ...quantize]) bytes += schedule.complete(job, result(job)).bytes;
  assert.equal(bytes, 8 + 50, 'the observe pass counted the other half');
  assert.equal(schedule.done, true);
});

test('observers that see the whole tensor: one job observes, several quantize', () => {
  const schedule = new Schedule([item('big', 90, 9, 2, false)], 50);
  const observe = schedule.next();
  assert.deepEqual(parts(observe), ['observe 0 0-9']);
  assert.equal(schedule.next(), null, 'the rest waits');
  assert.equal(schedule.complete(observe, result(observe)).bytes, 60, 'two passes of three');
  const quantize = [schedule.next(), schedule.next()];
  assert.deepEqual(quantize.map(parts), [['run 0 0-5'], ['run 0 5-9']]);
  assert.deepEqual(quantize[0].parts[0].state, Uint8Array.of(0), 'as it came');
  for (const job of quantize) schedule.complete(job, result(job));
  assert.equal(schedule.done, true);
});

test('tensors without tiles need no job', () => {
  const schedule = new Schedule([item('empty', 0, 0)], 50);
  assert.equal(schedule.done, true);
  assert.equal(schedule.next(), null);
});

test('sums are added in tile order, not in the order of arrival', () => {
  // 1e16 + 1 - 1e16 is 0 or 1 depending on the order.
  const units = [
    [1e16, 0, 0, 0, 1, 0, 0],
    [1, 0, 0, 0, 1, 0, 0],
    [-1e16, 0, 1, 0, 1, 0, 0],
  ];
  const run = (order) => {
    const schedule = new Schedule([item('x', 3, 3)], 1);
    const jobs = [schedule.next(), schedule.next(), schedule.next()];
    for (const number of order) schedule.complete(jobs[number], result(jobs[number], units[number]));
    return schedule.error(0);
  };
  const expected = run([0, 1, 2]);
  for (const order of [
    [2, 1, 0],
    [1, 0, 2],
    [2, 0, 1],
  ])
    assert.deepEqual(run(order), expected);
});

test('errors from sums', () => {
  const sums = new ErrorSums();
  assert.equal(sums.result(), null);
  // x = (3, 4), y = (3, 3): Σx² = 25, Σy² = 18, Σ(x−y)² = 1.
  sums.add(Float64Array.of(9, 9, 0, 0, 1, 0, 0, 16, 9, 1, 1, 1, 0, 0));
  const { sqnrDb, mse, maxAbs, cosine } = sums.result();
  assert.equal(sqnrDb, 10 * Math.log10(25));
  assert.equal(mse, 0.5);
  assert.equal(maxAbs, 1);
  assert.ok(Math.abs(cosine - 21 / Math.sqrt(25 * 18)) < 1e-15);
  // Values that are not finite make the error infinite, whatever the others are, and also where there are no others.
  for (const others of [sums, new ErrorSums()]) {
    others.add(Float64Array.of(0, 0, 0, 0, 0, 2, 3));
    const { nonFinite, ...error } = others.result();
    assert.deepEqual(nonFinite, { reference: 2, quantized: 3 });
    assert.deepEqual(error, { sqnrDb: -Infinity, mse: Infinity, maxAbs: Infinity, cosine: Number.NaN });
  }
});

test('contiguous rows are one request', () => {
  const read = { begin: 100, rowBytes: 8, stride: 8, rows: 1000 };
  assert.deepEqual([...spansOf(read, 0)], [{ begin: 100, bytes: 8000, firstRow: 0, rows: 1000, contiguous: true }]);
  assert.deepEqual([...spansOf({ ...read, rows: 0 }, 0)], []);
});

test('narrow gaps are read through, wide ones are skipped; every row is covered once', () => {
  for (const [rowBytes, stride, rows, gap, requests] of [
    [64, 4096, 10, 16384, 1],
    [64, 1_000_000, 10, 16384, 10],
    [4, 8, 3_000_000, 16384, 6],
    [8 * 2 ** 20, 8 * 2 ** 20 + 8, 3, 16384, 3],
  ]) {
    const spans = [...spansOf({ begin: 16, rowBytes, stride, rows }, gap)];
    assert.equal(spans.length, requests);
    let row = 0;
    for (const span of spans) {
      assert.equal(span.firstRow, row);
      assert.equal(span.begin, 16 + row * stride);
      assert.equal(span.bytes, (span.rows - 1) * stride + rowBytes);
      row += span.rows;
    }
    assert.equal(row, rows);
  }
});

test('offsets beyond 32 bits stay exact, beyond 53 are refused', () => {
  const far = { begin: 6 * 2 ** 30 + 8, rowBytes: 16, stride: 2 ** 31 + 16, rows: 3 };
  assert.deepEqual(
    [...spansOf(far, 0)].map(({ begin }) => begin),
    [far.begin, far.begin + far.stride, far.begin + 2 * far.stride],
  );
  assert.throws(() => [...spansOf({ begin: 2 ** 53, rowBytes: 1, stride: 1, rows: 1 }, 0)], { code: 'file-too-large' });
});

test('every budget gives sizes that fit it', () => {
  const mebibyte = 2 ** 20;
  for (const budget of [96, 128, 256, 512, 1024, 8192].map((size) => size * mebibyte)) {
    for (const threads of [0, 1, 2, 8, 64]) {
      const plan = planMemory(budget, threads);
      assert.ok(plan.threads <= threads && (threads === 0) === (plan.threads === 0));
      assert.ok(plan.tiles.columnTileBytes >= plan.tiles.tileBytes && plan.tiles.columnTileBytes <= 32 * mebibyte);
      const workers = Math.max(1, plan.threads);
      const used = workers * 4 * plan.tiles.columnTileBytes + plan.waitingBytes;
      assert.ok(used <= Math.max(budget - 160 * mebibyte, 24 * mebibyte) * 1.5, `${budget} with ${threads}: ${used}`);
    }
  }
});

test('tiles of joined weights are observed with the others, and never run', () => {
  const schedule = new Schedule([item('small', 10, 1, 1, true, 3), item('big', 100, 10, 1, true, 5)], 40);
  const jobs = [];
  for (let job = schedule.next(); job; job = schedule.next()) {
    jobs.push(...parts(job));
    schedule.complete(job, result(job, [0, 0, 0, 0, 0, 0, 0]));
  }
  assert.deepEqual(jobs, [
    'observe-and-run 0 0-4',
    'observe 1 0-4',
    'observe 1 4-8',
    'observe 1 8-12',
    'observe 1 12-15',
    'run 1 0-4',
    'run 1 4-8',
    'run 1 8-10',
  ]);
  assert.equal(schedule.done, true);
});
