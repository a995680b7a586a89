// A model of 6 GiB through a budget of 512 MiB: peak memory of the process, and values beyond the 4 GiB mark.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratchFolder } from './scratch.mjs';

const gibibyte = 2 ** 30;
const columns = 8192;
const tensorBytes = 3 * gibibyte;
const rows = tensorBytes / (4 * columns);

/** A sparse file: zeros, but for the last row, which holds 127.5 everywhere. */
function sparseModel(path) {
  const shape = [rows, columns];
  const text = JSON.stringify({
    'first.weight': { dtype: 'F32', shape, data_offsets: [0, tensorBytes] },
    'second.weight': { dtype: 'F32', shape, data_offsets: [tensorBytes, 2 * tensorBytes] },
  });
  const header = Buffer.alloc(8 + text.length);
  header.writeBigUInt64LE(BigInt(text.length));
  header.write(text, 8);
  const size = header.length + 2 * tensorBytes;
  const file = openSync(path, 'w');
  writeSync(file, header);
  ftruncateSync(file, size);
  const lastRow = new Float32Array(columns).fill(127.5);
  writeSync(file, new Uint8Array(lastRow.buffer), 0, lastRow.byteLength, size - lastRow.byteLength);
  closeSync(file);
}

test('6 GiB within 512 MiB, offsets beyond 4 GiB are right', (t) => {
  const path = join(scratchFolder(t), 'sparse.safetensors');
  sparseModel(path);
  const script = join(import.meta.dirname, 'stream_large_model.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, path], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  assert.equal(status, 0, stderr);
  const { maxRssBytes, bytes, lastScale, lastCode, firstScale, maxAbs } = JSON.parse(stdout);
  assert.ok(maxRssBytes < 512 * 2 ** 20, `peak ${(maxRssBytes / 2 ** 20).toFixed(0)} MiB`);
  assert.ok(bytes > 2 * rows * columns, 'a byte per weight');
  assert.equal(lastScale, 1);
  assert.equal(lastCode, 127);
  assert.ok(firstScale > 0 && firstScale < 1e-6, 'an all-zero row');
  assert.equal(maxAbs, 0.5, '127.5 became 127');
});
