// Results of workers on their way into files: whatever their order, append-only targets get every file from its first byte to
// its last, and what waits is bounded: no job is handed out while too much does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OutputFiles } from '../../../dist/plan/output_files.js';

const bytesOf = (from, to) => Uint8Array.from({ length: to - from }, (_, at) => (from + at) % 251);
const result = (...pieces) => ({ parts: [], pieces, written: [] });
const piece = (file, from, to) => ({ file, offset: from, bytes: bytesOf(from, to) });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A target that writes when `next()` is called, and keeps a log. */
function slowTarget(isPositioned) {
  const log = [];
  const waiting = [];
  return {
    log,
    next: async () => {
      await settled();
      waiting.shift()?.();
      await settled();
    },
    target: {
      isPositioned,
      async create(name) {
        return {
          path: null,
          async write(bytes, offset) {
            await new Promise((resolve) => waiting.push(resolve));
            assert.deepEqual(bytes, bytesOf(offset, offset + bytes.byteLength));
            log.push(`${name} ${offset}-${offset + bytes.byteLength}`);
          },
          async finish() {
            log.push(`${name} end`);
          },
        };
      },
    },
  };
}

const planned = (name, bytes, head) => ({ name, bytes, literals: [{ offset: 0, bytes: bytesOf(0, head) }] });

test('append-only: pieces in any order, files in order', async () => {
  const { target, log, next } = slowTarget(false);
  const output = new OutputFiles(target, [planned('a', 100, 10), planned('b', 50, 10)], 1000);
  await output.start();
  for (const each of [piece(1, 10, 50), piece(0, 60, 100), piece(0, 30, 60), piece(0, 10, 30)])
    output.accept(result(each));
  const finished = output.finish();
  for (let at = 0; at < 8; ++at) await next();
  await finished;
  assert.deepEqual(log, ['a 0-10', 'a 10-30', 'a 30-60', 'a 60-100', 'a end', 'b 0-10', 'b 10-50', 'b end']);
});

for (const isPositioned of [true, false]) {
  test(`backpressure, ${isPositioned ? 'positioned' : 'append-only'}`, async () => {
    const { target, next } = slowTarget(isPositioned);
    const output = new OutputFiles(target, [planned('a', 100, 10)], 60);
    await output.start();
    assert.ok(output.hasRoom(2));
    output.accept(result(piece(0, 10, 50)));
    assert.ok(output.hasRoom(2), '50 bytes wait, 60 may');
    output.accept(result(piece(0, 50, 90)));
    assert.ok(!output.hasRoom(2), '90 bytes wait');
    const changed = output.changed();
    await next();
    await changed;
    await next();
    assert.ok(output.hasRoom(2), 'the first two are written');
  });
}

test('append-only: with no job running, the job with the missing piece is admitted', async () => {
  const { target, next } = slowTarget(false);
  const output = new OutputFiles(target, [planned('a', 100, 10)], 30);
  await output.start();
  output.accept(result(piece(0, 50, 100)));
  await next();
  assert.ok(!output.hasRoom(1));
  assert.ok(output.hasRoom(0));
});

test('a byte that no worker wrote is found before the file appears', async () => {
  const { target, next } = slowTarget(true);
  const output = new OutputFiles(target, [planned('a', 100, 10), null], 1000);
  await output.start();
  await next();
  output.accept(result(piece(0, 10, 99)));
  await assert.rejects(output.finish(), {
    code: 'state-invalid',
    message: /99 bytes were written, but 100 were planned/,
  });
  assert.throws(() => output.accept(result(piece(1, 0, 1))), /not one of the 1 of this run/);
});
