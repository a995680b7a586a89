// A model of 4.5 GiB through a budget of 512 MiB: peak memory of the process, and values beyond the 4 GiB mark. Smaller budgets:
// what a run adds to bare Node stays within them, for row tiles and for column tiles, with the same bytes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { writeSparseSafetensors } from '../../bench/model_files.mjs';
import { scratchFolder } from '../scratch.mjs';

const gibibyte = 2 ** 30;
const columns = 8192;
const tensorBytes = 2.25 * gibibyte;
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

test('4.5 GiB within 512 MiB, with correct offsets beyond 4 GiB', (t) => {
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
  assert.equal(lastCode, 127 + 128, 'words hold codes from 0 up');
  assert.ok(firstScale > 0 && firstScale < 1e-6, 'an all-zero row');
  assert.equal(maxAbs, 0.5, '127.5 became 127');
});

for (const [preset, format] of [
  ['int4_wo_128', 'compressed-tensors'],
  ['uint4_wo_128', 'awq'],
]) {
  test(`budgets of 64, 256 and 512 MiB: ${preset} as ${format}`, (t) => {
    const folder = scratchFolder(t);
    const path = join(folder, 'sparse.safetensors');
    const shape = [8192, 8192];
    writeSparseSafetensors(
      path,
      ['up', 'down'].map((name) => ({ name: `model.layers.0.mlp.${name}_proj.weight`, shape })),
    );
    const script = join(import.meta.dirname, '../../bench/file_run.mjs');
    const digests = [64, 256, 512].flatMap((mebibytes) =>
      [1, 2].map((threads) => {
        const out = join(folder, `out-${mebibytes}-${threads}`);
        const args = [script, path, out, preset, String(threads), String(mebibytes * 2 ** 20), format];
        const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 600_000 });
        assert.equal(status, 0, stderr);
        const { baseBytes, peakBytes, sha256 } = JSON.parse(stdout);
        const added = (peakBytes - baseBytes) / 2 ** 20;
        assert.ok(
          added <= mebibytes,
          `${mebibytes} MiB, ${threads} workers: ${added.toFixed(0)} MiB more than bare Node`,
        );
        return sha256;
      }),
    );
    assert.deepEqual(new Set(digests).size, 1);
  });
}

test('a budget that no engine fits in is refused', async () => {
  await assert.rejects(createQuantizer({ memoryBudgetBytes: 63 * 2 ** 20 }), {
    code: 'memory-budget',
    message: /64 MiB/,
  });
});
