// presetConfig and --layer-type: a preset with changes, in the library as on the command line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perGroup } from '../../../dist/node.js';
import { cli, cliJson } from '../cli/process.mjs';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const dtypesOf = (tensors) =>
  Object.fromEntries(tensors.map(({ name, spec }) => [name.replace(/^model\.layers\.\d+\./, ''), spec?.dtype ?? null]));

test('a preset with layers, classes and exclusions equals the config of the same command-line options', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const config = quantizer.presetConfig('INT4_WO_32', {
    exclude: ['*.k_proj'],
    layers: { '*.down_proj': 'int8', '*.up_proj': { dtype: 'int8', qscheme: 'per_tensor' } },
    layerTypes: { Embedding: 'int8' },
  });
  const { tensors } = await quantizer.plan(model, config, { format: 'fake-quantized' });
  const found = dtypesOf(tensors);
  assert.equal(found['model.embed_tokens.weight'], 'int8');
  assert.equal(found['self_attn.k_proj.weight'], null);
  assert.equal(found['mlp.down_proj.weight'], 'int8');
  assert.equal(found['mlp.up_proj.weight'], 'int8');
  assert.equal(found['mlp.gate_proj.weight'], 'int4');
  const edits = ['-x', '*.k_proj', '--layer', '*.down_proj=int8', '--layer-type', 'Embedding=int8'];
  const { document } = await cliJson(['plan', tinyLlama, '-f', 'fake-quantized', '-p', 'int4_wo_32', ...edits]);
  const same = quantizer.presetConfig('int4_wo_32', {
    exclude: ['*.k_proj'],
    layers: { '*.down_proj': 'int8' },
    layerTypes: { Embedding: 'int8' },
  });
  const { totals } = await quantizer.plan(model, same, { format: 'fake-quantized' });
  assert.deepEqual(document.totals, JSON.parse(JSON.stringify(totals)));
  assert.deepEqual(quantizer.checkConfig(same), []);
});

test("recipes accept llama.cpp's types for layers", async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const config = quantizer.presetConfig('q4_0', { layers: { '*.down_proj': 'q8_0' } });
  const down = (await quantizer.plan(model, config)).tensors.find(({ name }) => name.endsWith('down_proj.weight'));
  assert.equal(down.outputs[0].dtype, 'q8_0');
  assert.throws(() => quantizer.presetConfig('q4_0', { layerTypes: { Embedding: 'q8_0' } }), { where: 'layerTypes' });
  const refused = await cli(['plan', tinyLlama, '-p', 'q4_0', '--layer-type', 'Embedding=q8_0']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /--layer-type does not work with GGUF recipes/);
});

test('a config of your own has the same edits as a preset', async (t) => {
  const quantizer = await quantizerFor(t);
  const own = { global_quant_config: { weight: perGroup('int4', 64) }, exclude: ['lm_head'] };
  const layers = { '*.down_proj': 'int8' };
  assert.deepEqual(quantizer.presetConfig(own, { exclude: ['*.gate'], layers }), {
    ...own,
    exclude: ['lm_head', '*.gate'],
    layer_quant_config: quantizer.presetConfig('int8', { layers }).layer_quant_config,
  });
  assert.deepEqual(own.exclude, ['lm_head']);
});

test('impossible options are refused by name', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.throws(() => quantizer.presetConfig(7), { code: 'argument-invalid', where: 'config' });
  assert.throws(() => quantizer.presetConfig('int5'), { code: 'argument-invalid', where: 'int5' });
  assert.throws(() => quantizer.presetConfig('int8', { layers: { a: 'int5' } }), { where: 'int5' });
  assert.throws(() => quantizer.presetConfig('int8', { layers: { a: 'q4_k_m' } }), /GGUF recipe/);
  assert.throws(() => quantizer.presetConfig('int8', { layer: {} }), /did you mean layers/);
  assert.deepEqual(quantizer.presetConfig('int8'), quantizer.presets().find(({ name }) => name === 'int8').config);
});
