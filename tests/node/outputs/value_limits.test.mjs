// Weights beyond what they are stored in, weights of which nothing is left, and models with NaN: nothing of it passes
// without a word.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const rows = 512;
const columns = 512;

/** One weight of noise, with `values` at some elements. */
function weight(values, size = 1) {
  const data = noise(rows * columns, 7).map((value) => value * size);
  for (const [element, value] of Object.entries(values)) data[element] = value;
  return safetensors({ 'l.weight': { dtype: 'F32', shape: [rows, columns], data } });
}

const grouped = (dtype, symmetric) => ({
  dtype,
  symmetric,
  qscheme: 'per_group',
  ch_axis: -1,
  group_size: 128,
  observer_cls: 'PerGroupMinMaxObserver',
});
const configOf = (spec, rest = {}) => ({
  global_quant_config: { weight: spec },
  layer_types: { l: 'Linear' },
  ...rest,
});

async function quantize(t, quantizer, source, config, format) {
  const model = await modelFor(t, quantizer, source);
  const out = memoryStream();
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, format });
  return { report, bytes: out.bytes() };
}

const first = 300 * columns + 4;
const large = { [first]: 1e6, [first + 1]: 2e6, [500 * columns + 2]: -1e6 };
const refused = [
  [
    'float16',
    { dtype: 'float16' },
    'compressed-tensors',
    first,
    /1000000 at element 153604 \(row 300, column 4\) is beyond float16, whose largest value is 65504/,
  ],
  [
    'float16 values',
    { dtype: 'float16' },
    'fake-quantized',
    first,
    /Use bfloat16, exclude the layer, or set "non_finite": "saturate"/,
  ],
  ['awq', grouped('uint4', false), 'awq', 500 * columns + 2, /-1000000 at element 256002 \(row 500, column 2\)/],
  ['gptq', grouped('int4', true), 'gptq', 500 * columns + 2, /beyond float16/],
];

for (const [name, spec, format, element, words] of refused) {
  test(`${name}: a weight of 1e6 is refused by name and element, for any number of threads`, async (t) => {
    const messages = new Set();
    for (const options of [{ threads: 0 }, { threads: 3 }, { threads: 2, memoryBudgetBytes: 64 * 2 ** 20 }]) {
      const quantizer = await quantizerFor(t, options);
      await assert.rejects(quantize(t, quantizer, weight(large), configOf(spec), format), (error) => {
        assert.equal(error.code, 'value-overflow');
        assert.equal(error.where, 'l.weight');
        assert.match(error.message, words);
        assert.match(error.message, new RegExp(`element ${element} `));
        messages.add(error.message);
        return true;
      });
    }
    assert.equal(messages.size, 1);
  });
}

test('of several failing weights the first is named, for any number of threads', async (t) => {
  const tensors = {};
  for (let i = 0; i < 24; ++i) {
    const data = noise(rows * columns, i + 1);
    if (i > 4) data[0] = 1e6; // found at once
    if (i === 4) data[rows * columns - 1] = 1e6; // found last
    tensors[`l.${i}.weight`] = { dtype: 'F32', shape: [rows, columns], data };
  }
  for (const threads of [0, 1, 4]) {
    const quantizer = await quantizerFor(t, { threads });
    await assert.rejects(quantize(t, quantizer, safetensors(tensors), 'float16', 'fake-quantized'), {
      code: 'value-overflow',
      where: 'l.4.weight',
    });
  }
});

test('saturating clamps to the largest finite value', async (t) => {
  const quantizer = await quantizerFor(t);
  const config = configOf({ dtype: 'float16' }, { non_finite: 'saturate' });
  const { bytes, report } = await quantize(t, quantizer, weight(large), config, 'fake-quantized');
  const halves = new Uint16Array(parsed(bytes).data('l.weight').buffer);
  assert.equal(halves[first], 0x7bff);
  assert.equal(halves[500 * columns + 2], 0xfbff);
  assert.equal(halves.filter((half) => (half & 0x7c00) === 0x7c00).length, 0);
  const { error } = report.tensors[0];
  assert.equal(error.maxAbs, 2e6 - 65504);
  assert.ok(error.sqnrDb < 1);
  assert.deepEqual(
    report.diagnostics.filter(({ code }) => code === 'sqnr-low').map(({ severity, where }) => [severity, where]),
    [['warning', 'l.weight']],
  );
});

test('GGUF: f16 and q4_0 of 1e6 are refused, as by llama-quantize; other types hold it', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const { bytes } = await quantize(t, quantizer, tinyLlama, 'f32');
  const source = await modelFor(t, quantizer, bytes);
  const { begin } = source.tensors.find(({ name }) => name === 'blk.1.ffn_up.weight');
  new DataView(bytes.buffer).setFloat32(begin + 4 * 1000, 1e6, true);
  for (const recipe of ['f16', 'q4_0', 'q4_1'])
    await assert.rejects(quantize(t, quantizer, bytes, recipe), (error) => {
      assert.equal(error.code, 'value-overflow');
      assert.equal(error.where, 'blk.1.ffn_up.weight');
      assert.match(error.message, /^blk\.1\.ffn_up\.weight: 1000000 at element 1000 \(row 3, column 232\)/);
      assert.match(error.message, /Use bf16, exclude the layer/);
      return true;
    });
  for (const recipe of ['q8_0', 'bf16', 'q4_k_m', 'mxfp4_moe']) {
    const { report } = await quantize(t, quantizer, bytes, recipe);
    const { error } = report.tensors.find(({ name }) => name === 'blk.1.ffn_up.weight');
    assert.ok(error.sqnrDb > 5 && !error.nonFinite, recipe);
  }
  const saturated = await quantize(t, quantizer, bytes, { dialect: 'gguf', recipe: 'q4_0', non_finite: 'saturate' });
  const again = await modelFor(t, quantizer, saturated.bytes);
  const { tensors } = await quantizer.compare(await modelFor(t, quantizer, bytes), again);
  assert.ok(tensors.every(({ error }) => !error?.nonFinite));
});

test('int4 of weights of 1e-9 gives only zeros, and the report warns', async (t) => {
  const quantizer = await quantizerFor(t);
  const zeros = new Float32Array(rows * columns);
  const tiny = noise(rows * columns, 7).map((value) => value * 1e-9);
  const shape = [rows, columns];
  const source = safetensors({
    'a.weight': { dtype: 'F32', shape, data: tiny },
    'b.weight': { dtype: 'F32', shape, data: zeros },
    'c.weight': { dtype: 'F32', shape, data: noise(rows * columns, 3) },
  });
  const config = configOf(grouped('int4', true), { layer_types: { a: 'Linear', b: 'Linear', c: 'Linear' } });
  const { report } = await quantize(t, quantizer, source, config, 'compressed-tensors');
  const warnings = report.diagnostics.filter(({ code }) => code === 'sqnr-low');
  assert.deepEqual(
    warnings.map(({ severity, where, message }) => [severity, where, message]),
    [['warning', 'a.weight', 'keeps an SQNR of only 0 dB, rounded down']],
  );
  assert.match(warnings[0].hint, /more bits or another dtype, or exclude/);
});

/** The reproduction of the finding: two weights, the first so far NaN. */
const partlyNaN = (count) =>
  safetensors({
    'l.weight': {
      dtype: 'F32',
      shape: [8, 128],
      data: noise(1024, 1).map((value, i) => (i < count ? Number.NaN : value)),
    },
    'm.weight': { dtype: 'F32', shape: [8, 128], data: noise(1024, 2) },
  });

test('compare: NaN on either side is an infinite error with a warning, and never exact', async (t) => {
  const folder = scratchFolder(t);
  const paths = [0, 800, 1024].map((count) => {
    const path = join(folder, `${count}.safetensors`);
    writeFileSync(path, partlyNaN(count));
    return path;
  });
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const models = await Promise.all(paths.map((path) => modelFor(t, quantizer, path)));
    for (const [at, count] of [
      [1, 800],
      [2, 1024],
    ]) {
      for (const [left, right] of [
        [0, at],
        [at, 0],
      ]) {
        const { tensors, diagnostics } = await quantizer.compare(models[left], models[right]);
        const { error } = tensors.find(({ name }) => name === 'l.weight');
        assert.equal(error.sqnrDb, Number.NEGATIVE_INFINITY);
        assert.equal(error.mse, Number.POSITIVE_INFINITY);
        assert.deepEqual(error.nonFinite, { reference: left === 0 ? 0 : count, quantized: left === 0 ? count : 0 });
        assert.deepEqual(
          diagnostics.map(({ severity, code, where }) => [severity, code, where]),
          [['warning', 'value-not-finite', 'l.weight']],
        );
        assert.equal(tensors.find(({ name }) => name === 'm.weight').error.sqnrDb, Number.POSITIVE_INFINITY);
      }
    }
  }
  const { code, stdout } = await cli(['compare', paths[0], paths[1]]);
  assert.equal(code, 0);
  assert.match(stdout, /l\.weight .*-∞ dB/);
  assert.match(stdout, /2 tensors compared, 1 exact/);
  assert.match(
    stdout,
    /warning .*value-not-finite\n.*0 values of the reference and 800 values of the quantized weight/,
  );
  assert.doesNotMatch(stdout, /no tensor differs/);
  const { document } = await cliJson(['compare', paths[0], paths[2]]);
  assert.deepEqual(document.tensors[0].error.nonFinite, { reference: 0, quantized: 1024 });
});

test('compare: models that share no weight are not equal', async (t) => {
  const folder = scratchFolder(t);
  for (const name of ['a', 'b']) {
    const data = noise(1024, 1);
    mkdirSync(join(folder, name));
    writeFileSync(
      join(folder, name, 'model.safetensors'),
      safetensors({ [`${name}.weight`]: { dtype: 'F32', shape: [8, 128], data } }),
    );
  }
  const { code, stdout } = await cli(['compare', join(folder, 'a'), join(folder, 'b')]);
  assert.equal(code, 1);
  assert.match(stdout, /nothing was compared/);
  assert.match(stdout, /nothing-compared/);
});

test('distribution: NaN is in no bin, and its channel has no SQNR', async (t) => {
  const quantizer = await quantizerFor(t);
  const [plain, broken] = await Promise.all([0, 200].map((count) => modelFor(t, quantizer, partlyNaN(count))));
  const { low, high, quantized, channelSqnrDb } = await quantizer.distribution(plain, broken, 'l.weight');
  assert.ok(low >= -1 && high <= 1);
  assert.equal(
    quantized.reduce((sum, count) => sum + count),
    1024 - 200,
  );
  assert.deepEqual([...channelSqnrDb].map(Number.isFinite), Array(8).fill(false));
  assert.equal(channelSqnrDb[1], Number.NEGATIVE_INFINITY);
  assert.equal(channelSqnrDb[2], Number.POSITIVE_INFINITY);
});

test('a run that saturates says how many values of the source are not finite, also when it is resumed or in parts', async (t) => {
  const quantizer = await quantizerFor(t);
  const values = { 3: Number.NaN, 4: Number.POSITIVE_INFINITY };
  const config = configOf(grouped('int4', true), { non_finite: 'saturate' });
  const { report } = await quantize(t, quantizer, weight(values), config, 'compressed-tensors');
  assert.deepEqual(report.tensors[0].error.nonFinite, { reference: 2, quantized: 0 });
  assert.deepEqual(
    report.diagnostics.filter(({ code }) => code === 'value-not-finite').map(({ where }) => where),
    ['l.weight'],
  );
  const folder = join(scratchFolder(t), 'parts');
  const model = await modelFor(t, quantizer, weight(values));
  await quantizer.quantizeModel(model, config, { target: folder, shards: { part: 1, of: 1 } });
  const merged = await quantizer.mergeShards(folder);
  assert.deepEqual(merged.tensors[0].error, report.tensors[0].error);
});
