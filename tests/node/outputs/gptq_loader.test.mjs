// Config blocks of gptq as loaders read them: transformers asks for modules_in_block_to_quantize, gptqmodel for `dynamic`, vLLM for both.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const names = ['self_attn.o_proj', 'mlp.up_proj', 'mlp.down_proj'].flatMap((name) =>
  [0, 1].map((block) => `model.layers.${block}.${name}`),
);

/** Quantizes six matrices of 64 x 64, or those of `layers`; `columns` of others by name. */
async function quantized(
  t,
  config,
  columns = {},
  { format = 'gptq', rows = 64, layers = names, family = 'llama', ...options } = {},
) {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'in');
  mkdirSync(folder);
  const weights = layers.map((name, seed) => {
    const shape = [rows, columns[name] ?? 64];
    return [`${name}.weight`, { dtype: 'F32', shape, data: noise(shape[0] * shape[1], seed + 1) }];
  });
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(weights)));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: family }));
  const model = await modelFor(t, quantizer, folder);
  const target = join(folder, '../out');
  const { diagnostics, tensors } = await quantizer.quantizeModel(model, config, { target, format, ...options });
  const { quantization_config } = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
  const left = tensors.filter(({ action }) => action !== 'quantize').map(({ name }) => name);
  return { block: quantization_config, left, limits: diagnostics.filter(({ code }) => code === 'loader-limit') };
}

const int4 = (group_size) => ({ dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size, symmetric: true });
const config = (exclude, more) => ({ global_quant_config: { weight: int4(32) }, exclude, ...more });

test('without unquantized layers there is no list', async (t) => {
  const { block, limits } = await quantized(t, config([]));
  assert.equal(block.modules_in_block_to_quantize, undefined);
  assert.deepEqual(limits, []);
});

test('layers left in every block are left out of the list of name endings', async (t) => {
  const { block, limits } = await quantized(t, config(['*down_proj']));
  assert.deepEqual(block.modules_in_block_to_quantize, [['self_attn.o_proj', 'mlp.up_proj']]);
  assert.equal(Object.keys(block.dynamic).length, 2);
  assert.deepEqual(limits, []);
});

test('if a layer is left in one block, its counterparts in other blocks are listed by full name', async (t) => {
  const { block } = await quantized(t, config(['*.1.mlp.down_proj']));
  assert.deepEqual(block.modules_in_block_to_quantize, [
    ['self_attn.o_proj', 'mlp.up_proj', 'model.layers.0.mlp.down_proj'],
  ]);
});

test('a layer that a preset leaves because groups do not divide it is left out, too', async (t) => {
  const { block } = await quantized(t, 'int4_wo_32', { [names[0]]: 20 });
  assert.ok(!block.modules_in_block_to_quantize[0].includes('self_attn.o_proj'));
});

test('two bit widths or group sizes, and groups that no kernel has, get a warning', async (t) => {
  for (const other of [{ ...int4(32), dtype: 'int8' }, int4(64)]) {
    const { limits } = await quantized(t, config([], { layer_quant_config: { '*down_proj': { weight: other } } }));
    assert.match(limits[0].message, /one number of bits and one group size/);
    assert.match(limits[0].hint, /vLLM/);
  }
  const { limits } = await quantized(t, { global_quant_config: { weight: int4(8) } });
  assert.match(limits[0].message, /no groups of 8/);
  for (const [size, isWarned] of [
    [8, true],
    [64, false],
    [256, true],
  ]) {
    const spec = { ...int4(size), dtype: 'uint4', symmetric: false };
    const columns = Object.fromEntries(names.map((name) => [name, 512]));
    const { limits } = await quantized(t, { global_quant_config: { weight: spec } }, columns, { format: 'awq' });
    assert.equal(limits.length, isWarned ? 1 : 0, `awq, groups of ${size}`);
  }
});

test('experts that transformers joins while it loads stay float unless requested: it would compute with random ones', async (t) => {
  const experts = ['gate_proj', 'up_proj', 'down_proj'].flatMap((name) =>
    [0, 1].map((expert) => `model.layers.0.mlp.experts.${expert}.${name}`),
  );
  const layers = ['model.layers.0.self_attn.o_proj', ...experts];
  const leftOut = experts.map((name) => `${name}.weight`);
  for (const [format, preset] of [
    ['gptq', 'int4_wo_32'],
    ['awq', 'uint4_wo_32'],
  ]) {
    const family = { format, layers, family: 'qwen3_moe' };
    const byDefault = await quantized(t, preset, {}, family);
    assert.deepEqual(byDefault.left.sort(), [...leftOut].sort());
    assert.deepEqual(byDefault.limits, []);
    const asked = await quantized(t, preset, {}, { ...family, experts: 'include' });
    assert.deepEqual(asked.left, []);
    assert.match(asked.limits[0].message, /random weights/);
  }
});

test("4-bit layers whose outputs are not a multiple of 32 get a warning: gptqmodel's kernel for CPUs refuses them", async (t) => {
  for (const [format, dtype, rows, isWarned] of [
    ['gptq', 'int4', 40, true],
    ['gptq', 'uint4', 40, true],
    ['awq', 'uint4', 40, true],
    ['gptq', 'int4', 96, false],
    ['awq', 'uint4', 96, false],
    ['gptq', 'int8', 40, false],
    ['gptq', 'int2', 48, false],
  ]) {
    const spec = { ...int4(32), dtype, symmetric: !dtype.startsWith('u') };
    const { limits } = await quantized(t, { global_quant_config: { weight: spec } }, {}, { format, rows });
    assert.deepEqual(
      limits.map(({ message }) => /outputs in multiples of 32/.test(message)),
      isWarned ? [true] : [],
      `${format} ${dtype} ${rows}`,
    );
  }
});

test('whole rows as groups get a warning: the same kernel has only a few lengths', async (t) => {
  for (const [format, dtype, columns, isWarned] of [
    ['gptq', 'int4', 64, false],
    ['gptq', 'int4', 192, true],
    ['awq', 'uint4', 192, true],
    ['gptq', 'int8', 192, false],
  ]) {
    const spec = { ...int4(-1), dtype, symmetric: !dtype.startsWith('u') };
    const sizes = Object.fromEntries(names.map((name) => [name, columns]));
    const { limits } = await quantized(t, { global_quant_config: { weight: spec } }, sizes, { format });
    assert.deepEqual(
      limits.map(({ message }) => /no groups of 192, the whole row/.test(message)),
      isWarned ? [true] : [],
      `${format} ${dtype} ${columns}`,
    );
  }
});

test('a quantized head gets a warning: transformers leaves it random', async (t) => {
  const layers = [...names, 'lm_head'];
  for (const [format, dtype] of [
    ['gptq', 'int4'],
    ['awq', 'uint4'],
  ]) {
    const spec = { ...int4(32), dtype, symmetric: dtype === 'int4' };
    const all = await quantized(t, { global_quant_config: { weight: spec } }, {}, { format, layers });
    assert.match(all.limits[0].message, /no quantized layer outside the blocks/, format);
    const blocks = { global_quant_config: { weight: spec }, exclude: ['lm_head'] };
    assert.deepEqual((await quantized(t, blocks, {}, { format, layers })).limits, [], format);
  }
});
