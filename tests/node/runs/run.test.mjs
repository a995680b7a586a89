// Whole runs: the same bytes each time, progress, slow streams, two at once.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { open as openHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';
import { digest, int4 } from './run_sources.mjs';

/** A run per tensor: two passes over every weight. */
const perTensor = 'int8_per_tensor';

/** Codes of fp8 codes. */
const twoStages = [
  { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
  { dtype: 'int4', qscheme: 'per_group', group_size: 32 },
];

/** A model with a tensor of several tiles in every budget, read along both axes, and small ones. */
function bigModel() {
  return safetensors({
    'wide.weight': { dtype: 'F32', shape: [24, 32768], data: noise(24 * 32768, 3) },
    'tall.weight': { dtype: 'F32', shape: [16384, 64], data: noise(16384 * 64, 5) },
    'small.weight': { dtype: 'F32', shape: [32, 64], data: noise(2048, 7) },
    'small.bias': { dtype: 'F32', shape: [32], data: noise(32, 9) },
    'empty.weight': { dtype: 'F32', shape: [0, 64], data: new Float32Array(0) },
  });
}

test('threads 0, 1, 2 and 3, several budgets and every target give the same bytes and errors', async (t) => {
  const folder = scratchFolder(t);
  const bytes = bigModel();
  const path = join(folder, 'big.safetensors');
  writeFileSync(path, bytes);
  const handle = await openHandle(path);
  t.after(() => handle.close());
  const sources = {
    path,
    bytes,
    blob: new Blob([bytes]),
    custom: {
      size: bytes.length,
      name: 'big.safetensors',
      read: async (offset, length) => bytes.subarray(offset, offset + length),
    },
    handle,
  };
  const column = {
    global_quant_config: {
      weight: {
        dtype: 'int8',
        qscheme: 'per_channel',
        ch_axis: 1,
        symmetric: true,
        round_method: 'half_even',
        scale_type: 'float',
        is_dynamic: false,
        observer_cls: 'PerChannelMinMaxObserver',
      },
    },
  };
  let number = 0;
  for (const [format, config] of [
    ['compressed-tensors', int4],
    ['compressed-tensors', perTensor],
    ['fake-quantized', column],
    ['quark', 'uint4_wo_32'],
    [
      'compressed-tensors',
      { global_quant_config: { weight: { dtype: 'int8', observer_cls: 'PerTensorMSEObserver' } } },
    ],
    ['quark', { global_quant_config: { weight: twoStages } }],
  ]) {
    let expected;
    for (const options of [
      { threads: 1 },
      { threads: 0 },
      { threads: 0, memoryBudgetBytes: 96 * 2 ** 20 },
      { threads: 2 },
      { threads: 2, workersAfterMs: 1 },
      { threads: 2, workersAfterMs: 60_000 },
      { threads: 3, memoryBudgetBytes: 200 * 2 ** 20 },
    ]) {
      const quantizer = await quantizerFor(t, options);
      const isFirst = options.threads === 1;
      for (const [name, source] of Object.entries(sources)) {
        if (!isFirst && name !== 'path' && name !== 'custom') continue;
        const model = await quantizer.open(source);
        const target = join(folder, `out-${format}-${number++}.safetensors`);
        const toPath = await quantizer.quantizeModel(model, config, { target, format });
        const { stream, state, bytes: written } = memoryStream();
        const toStream = await quantizer.quantizeModel(model, config, { target: stream, format });
        assert.ok(state.closed);
        const result = [await digest(readFileSync(target)), await digest(written()), toPath.tensors, toStream.tensors];
        const what = `${format} ${JSON.stringify(options)} from ${name}`;
        assert.equal(result[1], result[0], `${what}: stream and path`);
        if (options.workersAfterMs > 1) assert.equal(toStream.threads, 0, what);
        expected ??= result;
        assert.deepEqual(result, expected, what);
        await model.close();
      }
      assert.equal(quantizer.liveObjects, 0);
      await quantizer[Symbol.asyncDispose]();
    }
  }
});

test('progress is monotonic and ends complete', async (t) => {
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, bigModel());
    const seen = [];
    await quantizer.quantizeModel(model, perTensor, {
      target: memoryStream().stream,
      onProgress: (progress) => seen.push(progress),
    });
    assert.ok(seen.length >= 2);
    for (const [number, progress] of seen.entries()) {
      assert.ok(Number.isInteger(progress.bytesDone) && progress.bytesDone <= progress.bytesTotal);
      if (number > 0) {
        assert.ok(progress.bytesDone >= seen[number - 1].bytesDone);
        assert.ok(progress.index >= seen[number - 1].index);
      }
    }
    const last = seen.at(-1);
    assert.deepEqual([last.phase, last.bytesDone, last.index], ['write', last.bytesTotal, last.count]);
    assert.equal(last.count, 5);
    const engines = 1 + Math.max(1, threads);
    assert.ok(last.memoryBytes > 2 ** 20 && last.memoryBytes < engines * 64 * 2 ** 20, `${last.memoryBytes}`);
  }
});

test('a slow stream slows the run down instead of filling memory', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2, memoryBudgetBytes: 96 * 2 ** 20 });
  let read = 0;
  let written = 0;
  let most = 0;
  const bytes = safetensors({
    'copied.table': { dtype: 'U8', shape: [96 * 2 ** 20], data: new Uint8Array(96 * 2 ** 20) },
    'layer.weight': { dtype: 'F32', shape: [8, 8], data: Float32Array.from({ length: 64 }, (_, i) => i) },
  });
  const source = {
    size: bytes.length,
    async read(offset, length) {
      read += length;
      most = Math.max(most, read - written);
      return bytes.subarray(offset, offset + length);
    },
  };
  const model = await modelFor(t, quantizer, source);
  const stream = new WritableStream({
    async write(chunk) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      written += chunk.length;
    },
  });
  const { files } = await quantizer.quantizeModel(model, 'int8', { target: stream });
  assert.equal(written, files[0].bytes);
  assert.ok(most < 48 * 2 ** 20, `${most} bytes were under way at once`);
});

test('two runs at once on one quantizer', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const sinks = [memoryStream(), memoryStream(), memoryStream()];
  await Promise.all(sinks.map(({ stream }) => quantizer.quantizeModel(model, int4, { target: stream })));
  const digests = await Promise.all(sinks.map(({ bytes }) => digest(bytes())));
  assert.equal(new Set(digests).size, 1);
});
