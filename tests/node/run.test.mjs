// Whole runs: every kind of target and source, the same bytes each time, progress, reports, folders.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open as openHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';
import { noise, parsed, safetensors } from './written_model.mjs';

const sharded = join(tinyLlama, 'bf16');
const int4 = 'int4_wo_32';
/** A run per tensor: two passes over every weight. */
const perTensor = 'int8_per_tensor';

/** Codes of fp8 codes. */
const twoStages = [
  { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
  { dtype: 'int4', qscheme: 'per_group', group_size: 32 },
];

/** Files of a folder by name. */
const contents = (folder) =>
  Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name))]),
  );
/** Number of bytes and a hash, so that a difference is printed briefly. */
async function digest(bytes) {
  return `${bytes.length} ${Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')}`;
}

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
        expected ??= result;
        assert.deepEqual(result, expected, what);
        await model.close();
      }
      assert.equal(quantizer.liveObjects, 0);
      await quantizer[Symbol.asyncDispose]();
    }
  }
});

test('a folder output is a model: weights, index, config.json with the block, and the small files', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const source = join(scratchFolder(t), 'source');
  cpSync(sharded, source, { recursive: true });
  for (const [name, text] of [
    ['merges.txt', 'a b'],
    ['chat_template.jinja', '{{ x }}'],
    ['spiece.model', '\0'],
    ['pytorch_model.bin', 'other weights'],
    ['.hidden.json', '{}'],
  ]) {
    writeFileSync(join(source, name), text);
  }
  mkdirSync(join(source, 'onnx'));
  const whole = await modelFor(t, quantizer, source);
  const target = join(scratchFolder(t), 'deep', 'er', 'out');
  const report = await quantizer.quantizeModel(whole, int4, { target });
  const files = contents(target);
  assert.deepEqual(Object.keys(files), [
    'chat_template.jinja',
    'config.json',
    'generation_config.json',
    'merges.txt',
    'model-00001-of-00003.safetensors',
    'model-00002-of-00003.safetensors',
    'model-00003-of-00003.safetensors',
    'model.safetensors.index.json',
    'spiece.model',
  ]);
  assert.deepEqual(
    report.files.map(({ name, bytes }) => [name, bytes]).sort(),
    Object.entries(files)
      .map(([name, bytes]) => [name, bytes.length])
      .sort(),
  );
  const config = JSON.parse(files['config.json']);
  assert.equal(config.model_type, 'llama');
  assert.deepEqual(config.quantization_config, quantizer.plan(model, int4).quantizationConfig);
  const { weight_map } = JSON.parse(files['model.safetensors.index.json']);
  for (const [tensor, file] of Object.entries(weight_map))
    assert.ok(tensor in parsed(new Uint8Array(files[file])).header, tensor);
  const again = await modelFor(t, quantizer, target);
  assert.equal(again.tensors.length, Object.keys(weight_map).length);
});

test('{write(name)} gets one stream after another, weights first, config.json last', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const path = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(model, int4, { target: path });
  const streams = new Map();
  let open = 0;
  await quantizer.quantizeModel(model, int4, {
    target: {
      async write(name) {
        assert.equal(open++, 0, 'one at a time');
        const sink = memoryStream();
        const writer = sink.stream.getWriter();
        streams.set(name, sink);
        return new WritableStream({
          write: (chunk) => writer.write(chunk),
          close() {
            open -= 1;
            return writer.close();
          },
        });
      },
    },
  });
  assert.equal([...streams.keys()].at(-1), 'config.json');
  assert.match([...streams.keys()][0], /^model-0000\d-of-00003\.safetensors$/);
  const expected = contents(path);
  assert.deepEqual([...streams.keys()].sort(), Object.keys(expected));
  for (const [name, sink] of streams) assert.equal(await digest(sink.bytes()), await digest(expected[name]), name);
});

/** A folder of the File System Access API, in memory: files appear when their stream is closed. */
function memoryDirectory(existing = {}) {
  const files = new Map(Object.entries(existing));
  return {
    kind: 'directory',
    name: 'picked',
    files,
    async getFileHandle(name, { create = false } = {}) {
      if (!files.has(name)) {
        if (!create) throw new DOMException('no such file', 'NotFoundError');
        files.set(name, new Uint8Array(0));
      }
      return {
        kind: 'file',
        name,
        getFile: async () => new File([files.get(name)], name),
        async createWritable() {
          let bytes = new Uint8Array(0);
          return {
            async write({ type, position, data }) {
              assert.equal(type, 'write');
              if (bytes.length < position + data.length) {
                const longer = new Uint8Array(position + data.length);
                longer.set(bytes);
                bytes = longer;
              }
              bytes.set(data, position);
            },
            close: async () => void files.set(name, bytes),
            abort: async () => {},
          };
        },
      };
    },
    removeEntry: async (name) => void files.delete(name),
  };
}

test('file and directory handles', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const path = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(model, int4, { target: path });
  const directory = memoryDirectory();
  await quantizer.quantizeModel(model, int4, { target: directory });
  const expected = contents(path);
  assert.deepEqual([...directory.files.keys()].sort(), Object.keys(expected));
  for (const [name, bytes] of directory.files) assert.equal(await digest(bytes), await digest(expected[name]), name);

  await assert.rejects(quantizer.quantizeModel(model, int4, { target: directory }), { code: 'target-exists' });
  await quantizer.quantizeModel(model, int4, { target: directory, overwrite: true });

  const single = await modelFor(t, quantizer, tinyLlama);
  const handle = await memoryDirectory().getFileHandle('picked.safetensors', { create: true });
  const report = await quantizer.quantizeModel(single, int4, { target: handle });
  assert.deepEqual(report.files, [{ name: 'picked.safetensors', bytes: (await handle.getFile()).size }]);
  assert.ok(report.diagnostics.some(({ code }) => code === 'config-not-written'));
});

test('the report carries the plan and the error of every quantized tensor', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const plan = quantizer.plan(model, int4);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, int4, { target });
  assert.deepEqual(report.totals, plan.totals);
  assert.equal(report.threads, 1);
  assert.ok(report.durationMs > 0);
  assert.deepEqual(
    report.tensors.map(({ error: _, ...rest }) => rest),
    plan.tensors.map(({ outputs: _, ...rest }) => rest),
  );
  for (const tensor of report.tensors) {
    if (tensor.action === 'copy') assert.equal(tensor.error, null, tensor.name);
    else assert.ok(tensor.error.sqnrDb > 15 && tensor.error.sqnrDb < 30 && tensor.error.cosine > 0.98, tensor.name);
  }
  assert.equal(statSync(join(target, 'model.safetensors')).size, plan.files[0].bytes);
});

test('the error in the report is that of the decoded output', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const data = noise(64 * 256, 11);
  const model = await modelFor(t, quantizer, safetensors({ 'a.weight': { dtype: 'F32', shape: [64, 256], data } }));
  const { stream, bytes } = memoryStream();
  const report = await quantizer.quantizeModel(model, 'int8', { target: stream, format: 'fake-quantized' });
  const { header, data: tensor } = parsed(bytes());
  assert.equal(header['a.weight'].dtype, 'F32');
  const decoded = new Float32Array(tensor('a.weight').buffer);
  let [signal, noiseSum, maxAbs, dot, power] = [0, 0, 0, 0, 0];
  for (const [i, x] of data.entries()) {
    const y = decoded[i];
    signal += x * x;
    power += y * y;
    dot += x * y;
    noiseSum += (x - y) ** 2;
    maxAbs = Math.max(maxAbs, Math.abs(x - y));
  }
  const { error } = report.tensors[0];
  const near = (actual, expected, what) =>
    assert.ok(Math.abs(actual / expected - 1) < 1e-6, `${what}: ${actual}, expected ${expected}`);
  near(error.sqnrDb, 10 * Math.log10(signal / noiseSum), 'sqnrDb');
  near(error.mse, noiseSum / data.length, 'mse');
  near(error.maxAbs, maxAbs, 'maxAbs');
  near(error.cosine, dot / Math.sqrt(signal * power), 'cosine');
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

test('overwriting replaces the earlier output and takes its leftovers away, nothing else', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const [shards, single] = [await modelFor(t, quantizer, sharded), await modelFor(t, quantizer, tinyLlama)];
  const target = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(shards, int4, { target });
  writeFileSync(join(target, 'notes.txt'), 'mine');
  writeFileSync(join(target, 'adapter.safetensors'), 'mine');
  await quantizer.quantizeModel(single, int4, { target, overwrite: true });
  const names = readdirSync(target);
  assert.deepEqual(names.filter((name) => /safetensors/.test(name)).sort(), [
    'adapter.safetensors',
    'model.safetensors',
  ]);
  assert.ok(names.includes('notes.txt'));
});

test('compare measures what the run reported', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  for (const [format, config] of [
    ['compressed-tensors', int4],
    ['compressed-tensors', 'int8'],
    ['compressed-tensors', 'fp8'],
    ['quark', 'uint4_wo_32'],
    ['fake-quantized', int4],
  ]) {
    const target = join(scratchFolder(t), 'out');
    const report = await quantizer.quantizeModel(model, config, { target, format });
    const quantized = await modelFor(t, quantizer, target);
    const compared = await quantizer.compare(model, quantized);
    const byName = new Map(compared.tensors.map((tensor) => [tensor.name, tensor]));
    for (const tensor of report.tensors.filter(({ error }) => error)) {
      const found = byName.get(tensor.name);
      assert.ok(found?.error, `${format} ${config}: ${tensor.name} is compared`);
      assert.ok(
        Math.abs(found.error.sqnrDb - tensor.error.sqnrDb) < 1e-3,
        `${format} ${config}: ${tensor.name} ${found.error.sqnrDb} dB, reported ${tensor.error.sqnrDb}`,
      );
    }
    assert.deepEqual(compared.diagnostics, []);
    assert.equal(compared.format, null);
  }
});

test('a model compared with itself has no error', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const progress = [];
  const { tensors, totals } = await quantizer.compare(model, model, { onProgress: (step) => progress.push(step) });
  assert.ok(tensors.length > 30);
  for (const { error } of tensors)
    assert.deepEqual(error, { sqnrDb: Number.POSITIVE_INFINITY, mse: 0, maxAbs: 0, cosine: 1 });
  assert.equal(totals.quantized, 0);
  assert.equal(totals.bytesBefore, totals.bytesAfter);
  assert.equal(progress.at(-1).bytesDone, progress.at(-1).bytesTotal);
});
