// Files of AMD Quark's format as its loader sees them: what it cannot read is warned of, and its config block says what was done. What it
// reads was tried with AMD Quark 0.13 under transformers; `npm run test:seams -- 100 --loaders` tries other cases.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const layer = (name) => `model.layers.0.mlp.${name}`;

/** Quantizes one matrix called up_proj, and down_proj of 64 x `inner`. */
async function quantized(
  t,
  quantizer,
  config,
  { rows = 96, columns = 64, inner = 96, family = 'llama', name = layer('up_proj') } = {},
) {
  const folder = join(scratchFolder(t), 'in');
  mkdirSync(folder);
  const matrix = (shape, seed) => ({ dtype: 'F32', shape, data: noise(shape[0] * shape[1], seed) });
  const weights = {
    [`${name}.weight`]: matrix([rows, columns], 1),
    [`${layer('down_proj')}.weight`]: matrix([64, inner], 2),
  };
  writeFileSync(join(folder, 'model.safetensors'), safetensors(weights));
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ model_type: family, architectures: ['LlamaForCausalLM'] }),
  );
  const model = await modelFor(t, quantizer, folder);
  const target = join(folder, '../out');
  const report = await quantizer.quantizeModel(model, config, { target, format: 'quark', overwrite: true });
  const block = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).quantization_config;
  return { limits: report.diagnostics.filter(({ code }) => code === 'loader-limit'), block };
}

const onlyUp = (weight) => ({ global_quant_config: { weight }, exclude: ['*down_proj'] });
const tensor = { qscheme: 'per_tensor' };
const channel = { qscheme: 'per_channel', ch_axis: 0 };
const group = { qscheme: 'per_group', ch_axis: -1, group_size: 32 };
const block = (...block_size) => ({ qscheme: 'per_block', block_size });

for (const [dtype, scheme, options, isRead] of [
  ['int2', group, {}, true],
  ['int3', group, {}, false],
  ['int3', channel, {}, false],
  ['int4', tensor, {}, false],
  ['int4', channel, {}, true],
  ['int4', channel, { rows: 100 }, false],
  ['uint4', { ...channel, symmetric: false }, { rows: 100 }, false],
  ['fp4', channel, { rows: 97 }, false],
  ['fp4', channel, { rows: 98 }, true],
  ['int4', group, { rows: 100 }, true],
  ['int8', tensor, {}, true],
  ['int8', channel, { rows: 100 }, true],
  ['fp8_e4m3', tensor, {}, true],
  ['fp8_e4m3', channel, {}, true],
  ['fp8_e4m3', group, {}, false],
  ['fp8_e4m3', { ...group, scale_format: 'e8m0' }, {}, false],
  ['fp8_e4m3', block(16, 16), {}, true],
  ['fp8_e4m3', block(64, 64), {}, false],
  ['fp8_e4m3fnuz', channel, {}, false],
  ['fp6_e2m3', channel, {}, true],
  ['fp6_e2m3', tensor, {}, false],
  ['fp4', { ...group, scale_format: 'e8m0' }, {}, true],
  ['fp4', block(16, 16), {}, false],
  ['fp4', { ...group, scale_format: 'e4m3' }, {}, false],
  ['mx9', {}, {}, false],
]) {
  const shape = options.rows ? `, ${options.rows} rows` : '';
  test(`${dtype} ${scheme.qscheme ?? ''} ${scheme.scale_format ?? ''}${shape} is ${isRead ? 'read' : 'warned of'}`, async (t) => {
    const quantizer = await quantizerFor(t);
    const { limits } = await quantized(t, quantizer, onlyUp({ dtype, symmetric: true, ...scheme }), options);
    assert.equal(limits.length, isRead ? 0 : 1);
    if (!isRead) assert.equal(limits[0].severity, 'warning');
  });
}

test('second scales, which transformers ignores, and experts, which it merges, get a warning', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const preset of ['nvfp4', 'int4_fp8']) {
    const { limits } = await quantized(t, quantizer, preset, { inner: 64 });
    assert.match(limits[0].message, /weight_scale_2/);
  }
  const name = 'model.layers.0.mlp.experts.0.up_proj';
  const { limits } = await quantized(t, quantizer, 'int8', { family: 'qwen3_moe', name });
  assert.equal(limits[0].where, name);
  assert.match(limits[0].hint, /vLLM/);
});

test('fp8_e5m3 weights are refused, because their loader reads codes as values', async (t) => {
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantized(t, quantizer, onlyUp({ dtype: 'fp8_e5m3', ...tensor })), {
    code: 'format-unsupported',
  });
});

test('layers that are only cast are excluded: it cannot load specs of 16 bits', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'int8', ...channel, symmetric: true };
  const cast = { weight: { dtype: 'bfloat16' } };
  const { block } = await quantized(t, quantizer, {
    global_quant_config: { weight },
    layer_quant_config: { '*down_proj': cast },
  });
  assert.deepEqual(block.layer_quant_config, {});
  assert.ok(block.exclude.includes(layer('down_proj')));
});

test("a group that is a whole row is written with the row's length: the loader divides by the group size", async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'int4', ...group, group_size: -1, symmetric: true };
  const { block } = await quantized(t, quantizer, { global_quant_config: { weight } });
  const sizes = ['up_proj', 'down_proj'].map((name) => block.layer_quant_config[layer(name)].weight.group_size);
  assert.deepEqual(sizes, [64, 96]);
});

test('inputs left unquantized because groups do not divide them are not in the block', async (t) => {
  const quantizer = await quantizerFor(t);
  const { block } = await quantized(t, quantizer, 'int4_wa_64');
  assert.equal(block.global_quant_config.input_tensors.group_size, 64);
  assert.equal(block.layer_quant_config[layer('down_proj')].input_tensors, null);
});
