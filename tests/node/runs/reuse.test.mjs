// A run that takes what has not changed from the output of a former one: the same bytes and errors as a whole run.
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { twoLayers } from '../onnx/model.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const contents = (folder) =>
  Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name))]),
  );

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
const uint4 = { ...int4, dtype: 'uint4', symmetric: false };
const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const layer = 'model.layers.2.mlp.down_proj';
const configs = (weight) => [
  { global_quant_config: { weight }, exclude: ['lm_head'] },
  { global_quant_config: { weight }, layer_quant_config: { [layer]: { weight: int8 } } },
];
const recipes = [
  { dialect: 'gguf', recipe: 'q4_0' },
  { dialect: 'gguf', recipe: 'q4_0', layers: { [layer]: 'q8_0' } },
];

/** For formats that hold one kind of weight only. */
const excluding = [['lm_head'], ['lm_head', layer]].map((exclude) => ({
  global_quant_config: { weight: { ...uint4, group_size: 64 } },
  exclude,
}));

async function outcome(quantizer, model, config, options) {
  const report = await quantizer.quantizeModel(model, config, options);
  return { report, files: contents(options.target) };
}

for (const [format, [before, after], name] of [
  ['compressed-tensors', configs(int4)],
  ['compressed-tensors', configs(uint4), 'with zero points'],
  ['quark', configs(uint4)],
  ['fake-quantized', configs(int4)],
  ['gptq', excluding],
  ['awq', excluding],
  ['gguf', recipes],
]) {
  test(`${format}${name ? ` ${name}` : ''}: the same bytes and errors as a whole run, for 0 and 2 threads`, async (t) => {
    for (const threads of [0, 2]) {
      const quantizer = await quantizerFor(t, { threads });
      const model = await modelFor(t, quantizer, tinyLlama);
      const folder = scratchFolder(t);
      const whole = await outcome(quantizer, model, after, { target: join(folder, 'whole'), format });
      const former = await outcome(quantizer, model, before, { target: join(folder, 'former'), format });
      const output = await modelFor(t, quantizer, join(folder, 'former'));
      const seen = [];
      const onProgress = (progress) => seen.push(progress);
      const reuse = { config: before, output, report: former.report };
      const options = { target: join(folder, 'reused'), format, reuse, onProgress };
      const { report, files } = await outcome(quantizer, model, after, options);
      assert.deepEqual(Object.keys(files), Object.keys(whole.files));
      for (const [file, bytes] of Object.entries(files)) assert.ok(bytes.equals(whole.files[file]), file);
      assert.deepEqual(report.tensors, whole.report.tensors);
      const changed = format === 'gguf' ? 1 : after === excluding[1] ? 0 : 2;
      assert.equal(report.reused, whole.report.totals.quantized - changed);
      const last = seen.at(-1);
      assert.equal(last.bytesDone, last.bytesTotal);
      assert.ok(last.bytesTotal < seen.length * 20_000_000);
      assert.equal(quantizer.liveObjects, 2, 'the models');
    }
  });
}

test('onnx: the same bytes as a whole run', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, new File([twoLayers().bytes], 'layers.onnx'));
  const [before, after] = [{ global_quant_config: { weight: int4 } }, { global_quant_config: { weight: int4 } }];
  after.layer_quant_config = {
    [model.tensors.find(({ layerType }) => layerType === 'Linear').layer]: { weight: int8 },
  };
  const [whole, former, again] = [memoryStream(), memoryStream(), memoryStream()];
  await quantizer.quantizeModel(model, after, { target: whole.stream });
  const report = await quantizer.quantizeModel(model, before, { target: former.stream });
  const output = await modelFor(t, quantizer, new File([former.bytes()], 'former.onnx'));
  const reuse = { config: before, output, report };
  const { reused, totals } = await quantizer.quantizeModel(model, after, { target: again.stream, reuse });
  assert.equal(Buffer.compare(again.bytes(), whole.bytes()), 0);
  assert.ok(reused > 0 && reused < totals.quantized, `${reused} of ${totals.quantized}`);
});

test('into a stream, in order', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const [before, after] = configs(int4);
  const folder = scratchFolder(t);
  const whole = memoryStream();
  await quantizer.quantizeModel(model, after, { target: whole.stream });
  const { report } = await outcome(quantizer, model, before, { target: join(folder, 'former') });
  const output = await modelFor(t, quantizer, join(folder, 'former'));
  const again = memoryStream();
  await quantizer.quantizeModel(model, after, { target: again.stream, reuse: { config: before, output, report } });
  assert.equal(Buffer.compare(again.bytes(), whole.bytes()), 0);
});

test('an output of another config is refused, and no output is overwritten', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const [before, after] = configs(int4);
  const folder = scratchFolder(t);
  const { report } = await outcome(quantizer, model, before, { target: join(folder, 'former') });
  const output = await modelFor(t, quantizer, join(folder, 'former'));
  const run = (reuse, target = join(folder, 'next')) =>
    quantizer.quantizeModel(model, after, { target, overwrite: true, reuse });
  await assert.rejects(run({ config: after, output, report }), { code: 'argument-invalid', where: 'reuse' });
  await assert.rejects(run({ config: before, output: model, report }), { code: 'argument-invalid', where: 'reuse' });
  await assert.rejects(run({ config: before, output, report }, join(folder, 'former')), { code: 'target-invalid' });
});

/** Llama's files with one change to the weights. */
function altered(folder, change) {
  for (const name of ['config.json', 'model.safetensors']) copyFileSync(join(tinyLlama, name), join(folder, name));
  const path = join(folder, 'model.safetensors');
  const bytes = readFileSync(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + headerBytes));
  const { data_offsets: place } = header[`${layer}.weight`];
  change(bytes.subarray(8 + headerBytes + place[0], 8 + headerBytes + place[1]));
  writeFileSync(path, bytes);
  return folder;
}

for (const [what, change] of [
  ['one tensor of other weights', (bytes) => bytes.reverse()],
  ['one value', (bytes) => bytes.copyWithin(4096, 4200, 4202)],
])
  test(`the output of a model that differs in ${what} is refused, and named`, async (t) => {
    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, tinyLlama);
    const folder = scratchFolder(t);
    const config = configs(int4)[0];
    const { report } = await outcome(quantizer, model, config, { target: join(folder, 'former') });
    const output = await modelFor(t, quantizer, join(folder, 'former'));
    const other = await modelFor(t, quantizer, altered(scratchFolder(t), change));
    const reuse = { config, output, report };
    await assert.rejects(quantizer.quantizeModel(other, config, { target: join(folder, 'other'), reuse }), {
      code: 'argument-invalid',
      message: new RegExp(`${layer}.weight was made from other weights`),
    });
    assert.ok(!readdirSync(folder).includes('other'));
  });

test('a former run with another importance matrix, with none, or of another version is refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const folder = scratchFolder(t);
  const matrix = (step) => {
    const tokens = { data: Array.from({ length: 128 }, (_, i) => 3 + ((i * step) % 250)), shape: [2, 64] };
    return quantizer.languageModel(model).importance({ calibration: { tokens } });
  };
  const matrices = { none: undefined, a: await matrix(7), b: await matrix(131) };
  const run = (name, imatrix, more) => {
    const gguf = imatrix && { gguf: { imatrix, imatrixName: 'text' } };
    return outcome(quantizer, model, 'q4_0', { target: join(folder, name), format: 'gguf', ...gguf, ...more });
  };
  const runs = {};
  for (const [name, imatrix] of Object.entries(matrices)) runs[name] = await run(name, imatrix);
  for (const [then, { report }] of Object.entries(runs))
    for (const [now, imatrix] of Object.entries(matrices)) {
      const output = await modelFor(t, quantizer, join(folder, then));
      for (const own of [report, JSON.parse(JSON.stringify(report))]) {
        const again = run(`${then}-${now}`, imatrix, {
          overwrite: true,
          reuse: { config: 'q4_0', output, report: own },
        });
        if (then !== now) {
          await assert.rejects(again, { code: 'argument-invalid', where: 'reuse' }, `${then}, ${now}`);
          continue;
        }
        const { files, report: found } = await again;
        assert.deepEqual(files, runs[now].files);
        assert.equal(found.reused, found.totals.quantized);
      }
    }
  const output = await modelFor(t, quantizer, join(folder, 'none'));
  const { identity, ...report } = runs.none.report;
  for (const [wrong, message] of [
    [undefined, /earlier version/],
    [{ ...identity, library: '0.0.1' }, /is of version 0\.0\.1/],
  ])
    await assert.rejects(
      run('next', undefined, { reuse: { config: 'q4_0', output, report: { ...report, identity: wrong } } }),
      { code: 'argument-invalid', message },
    );
});

test('the output of an earlier process is reused: the model opened again, the report read from a file', async (t) => {
  const folder = scratchFolder(t);
  for (const [format, [before, after]] of Object.entries({
    'compressed-tensors': configs(uint4),
    quark: configs(int4),
    'fake-quantized': configs(int4),
    gptq: excluding,
    awq: excluding,
    gguf: recipes,
  })) {
    const first = await quantizerFor(t);
    const target = (name) => join(folder, `${format}-${name}`);
    const options = (name) => ({ target: target(name), format });
    const former = await outcome(first, await modelFor(t, first, tinyLlama), before, options('former'));
    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, tinyLlama);
    const whole = await outcome(quantizer, model, after, options('whole'));
    const report = JSON.parse(JSON.stringify(former.report));
    const reuse = { config: before, output: await modelFor(t, quantizer, target('former')), report };
    const found = await outcome(quantizer, model, after, { ...options('reused'), reuse });
    assert.ok(found.report.reused > 0, `${format}: ${found.report.reused} reused`);
    for (const [file, bytes] of Object.entries(found.files)) assert.ok(bytes.equals(whole.files[file]), file);
  }
});
