// What is written is read back: random specs, formats and shapes, small ones and those at which rows, words and groups end.
// The values of the file are those that the report measured, and as a source it gives them again.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const cases = 150;
/** Rounding to float16 changes a value by at most 2^-11 of it; a bound that allows for other errors would depend on the weights. */
const float16Db = 20 * Math.log10(2 ** 11);
let state = 20_261;
const below = (count) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * count);
};
const pick = (values) => values[below(values.length)];
const layer = (number) => `model.layers.${number}.mlp.up_proj`;

function randomSpec() {
  const dtype = pick([
    'int8',
    'uint8',
    'int4',
    'uint4',
    'int3',
    'int2',
    'fp8_e4m3',
    'fp6_e3m2',
    'fp4',
    'mx',
    'mx6',
    'mx9',
  ]);
  if (dtype === 'mx') return { dtype, mx_element_dtype: pick(['int8', 'fp8_e4m3', 'fp6_e2m3', 'fp4']) };
  if (dtype === 'mx6' || dtype === 'mx9') return { dtype };
  const qscheme = pick(['per_tensor', 'per_channel', 'per_group', 'per_group', 'per_block']);
  const spec = { dtype, qscheme };
  if (qscheme === 'per_channel') spec.ch_axis = 0;
  if (qscheme === 'per_group') Object.assign(spec, { ch_axis: -1, group_size: pick([8, 16, 32, 64, -1, 5, 2]) });
  if (qscheme === 'per_block') spec.block_size = [pick([4, 16, 5]), pick([8, 32, 7])];
  if (dtype.includes('int')) spec.symmetric = pick([true, false]);
  return spec;
}

/** Formats that store codes in any shape. */
function anyCase() {
  const columns = [1, 2, 5, 7, 8, 31, 32, 33, 64, 90, 100, 128, 180];
  const shapes = [0, 1].map(() => [1 + below(pick([2, 20])), pick(columns)]);
  return { spec: randomSpec(), format: pick(['quark', 'compressed-tensors']), shapes };
}
/** Formats of whole words: groups, and rows in eights. */
function casesOfWords() {
  const format = pick(['gptq', 'awq']);
  const dtype = format === 'awq' ? 'uint4' : pick(['int2', 'int4', 'uint4', 'int8', 'uint8']);
  const spec = { dtype, qscheme: 'per_group', ch_axis: -1, group_size: pick([32, 64, -1]) };
  if (dtype.startsWith('u')) spec.symmetric = false;
  return { spec, format, shapes: [0, 1].map(() => [pick([8, 16, 48]), pick([64, 128, 192])]) };
}

async function readBack(quantizer, t, folder, { spec, format, shapes }) {
  const tensors = {};
  for (const [i, shape] of shapes.entries())
    tensors[`${layer(i)}.weight`] = { dtype: 'F32', shape, data: noise(shape[0] * shape[1], i + 3) };
  mkdirSync(folder);
  const source = join(folder, 'model.safetensors');
  writeFileSync(source, safetensors(tensors));
  writeFileSync(join(folder, 'config.json'), '{"model_type":"llama","architectures":["LlamaForCausalLM"]}');
  const model = await modelFor(t, quantizer, folder);
  const config = { global_quant_config: { weight: spec } };
  const target = join(folder, 'out');
  let report;
  try {
    report = await quantizer.quantizeModel(model, config, { target, format });
  } catch (error) {
    assert.ok(['format-unsupported', 'group-size-invalid'].includes(error.code), error.message);
    return false;
  }
  const output = await modelFor(t, quantizer, target);
  const compared = await quantizer.compare(model, output);
  for (const row of report.tensors) {
    const found = compared.tensors.find((each) => each.name === row.name)?.error;
    assert.ok(found, `${row.name} is not compared`);
    const near = Math.abs(found.mse - row.error.mse) <= 1e-5 * Math.max(found.mse, 1e-30);
    assert.ok(near, `${row.name}: ${found.mse} read, ${row.error.mse} written`);
  }
  const again = join(folder, 'again');
  const plain = { global_quant_config: { weight: { dtype: 'float16' } } };
  await quantizer.quantizeModel(output, plain, { target: again, format: 'fake-quantized' });
  const copies = await quantizer.compare(output, await modelFor(t, quantizer, again));
  for (const { name } of report.tensors) {
    const copy = copies.tensors.find((each) => each.name === name)?.error;
    assert.ok(copy?.sqnrDb >= float16Db, `${name}: ${copy?.sqnrDb} dB between the file and the values made of it`);
  }
  return true;
}

test('random specs, formats and shapes are read back', async (t) => {
  const quantizer = await quantizerFor(t);
  const root = scratchFolder(t);
  let written = 0;
  for (let number = 0; number < cases; ++number) {
    const each = pick([anyCase, anyCase, casesOfWords])();
    await t.test(JSON.stringify(each), async (inner) => {
      written += (await readBack(quantizer, inner, join(root, `${number}`), each)) ? 1 : 0;
    });
  }
  assert.ok(written > cases / 4, `${written} written`);
});

for (const [label, each] of Object.entries({
  'quark: one row per channel': {
    spec: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 },
    format: 'quark',
    shapes: [[1, 64]],
  },
  'quark: one row of int4 per channel': {
    spec: { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0 },
    format: 'quark',
    shapes: [[1, 32]],
  },
  'compressed-tensors: 18 groups of 5 in words that are filled in part': {
    spec: { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 5 },
    format: 'compressed-tensors',
    shapes: [
      [4, 90],
      [4, 100],
    ],
  },
  'compressed-tensors: 18 groups of 2 of int2': {
    spec: { dtype: 'int2', qscheme: 'per_group', ch_axis: -1, group_size: 2 },
    format: 'compressed-tensors',
    shapes: [[4, 36]],
  },
  'compressed-tensors: a group that is the whole row': {
    spec: { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: -1 },
    format: 'compressed-tensors',
    shapes: [
      [8, 4],
      [8, 48],
    ],
  },
  'compressed-tensors: fp8 blocks that end short in both directions': {
    spec: { dtype: 'fp8_e4m3', qscheme: 'per_block', block_size: [16, 32] },
    format: 'compressed-tensors',
    shapes: [
      [40, 48],
      [7, 33],
      [1, 65],
    ],
  },
}))
  test(`${label} is read back`, async (t) => {
    const quantizer = await quantizerFor(t);
    assert.ok(await readBack(quantizer, t, join(scratchFolder(t), 'model'), each));
  });
