// Presets bfloat16 and float16 cast the whole model: every float, and the dtype that config.json says.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const values = (...shape) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    shape.length,
  ),
});
/** Tensors of every kind, and what is not cast. */
const floats = {
  'embeddings.word_embeddings.weight': values(64, 32),
  'encoder.layer.0.attention.self.query.weight': values(32, 32),
  'encoder.layer.0.attention.self.query.bias': values(32),
  'encoder.layer.0.LayerNorm.weight': values(32),
  'encoder.layer.0.LayerNorm.bias': values(32),
  'conv.weight': values(8, 4, 3, 3),
  'conv1d.weight': values(8, 4, 3),
  cls_token: values(1, 1, 32),
  logit_scale: values(),
  'lm_head.weight': values(64, 32),
};
const kept = {
  'layers.0.mixer.A_log': values(8),
  'layers.0.gate.e_score_correction_bias': values(8),
  'rotary_emb.inv_freq': values(8),
  position_ids: { dtype: 'I64', shape: [1, 4], data: new BigInt64Array(4) },
};

function folderWith(t, tensors, config) {
  const folder = join(scratchFolder(t), 'model');
  mkdirSync(folder);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  if (config) writeFileSync(join(folder, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
  return folder;
}

/** The header and the config of what a preset makes of a folder. */
async function cast(t, folder, preset, format = 'fake-quantized') {
  const quantizer = await quantizerFor(t);
  const out = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(await modelFor(t, quantizer, folder), preset, { target: out, format });
  const { header, data } = parsed(new Uint8Array(readFileSync(join(out, 'model.safetensors'))));
  delete header.__metadata__;
  const text = readFileSync(join(out, 'config.json'), 'utf8');
  return {
    dtypes: Object.fromEntries(Object.entries(header).map(([name, { dtype }]) => [name, dtype])),
    data,
    text,
    report,
  };
}

const config = {
  architectures: ['BertModel'],
  model_type: 'bert',
  torch_dtype: 'float32',
  text_config: { dtype: 'float32', hidden_size: 32 },
  vision_config: { hidden_size: 32 },
};

for (const [preset, dtype] of [
  ['bfloat16', 'BF16'],
  ['float16', 'F16'],
]) {
  for (const format of ['fake-quantized', 'compressed-tensors'])
    test(`${preset} as ${format} casts every float but those that classes keep in float32`, async (t) => {
      const { dtypes, text, report } = await cast(t, folderWith(t, { ...floats, ...kept }, config), preset, format);
      for (const name of Object.keys(floats)) assert.equal(dtypes[name], dtype, name);
      for (const [name, { dtype }] of Object.entries(kept)) assert.equal(dtypes[name], dtype, name);
      const wanted = { ...config, torch_dtype: preset, text_config: { ...config.text_config, dtype: preset } };
      assert.equal(text, `${JSON.stringify(wanted, null, 2)}\n`);
      assert.deepEqual(
        report.diagnostics.filter(({ severity }) => severity !== 'note'),
        [],
      );
    });
}

test('values are rounded to nearest, ties to even, and what is bfloat16 already stays', async (t) => {
  const bits = Uint16Array.from([0x3f80, 0x7f7f, 0xff80 - 1, 1]);
  const numbers = Float32Array.from([1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -0, 1e-40, 3e38]);
  const tensors = {
    'a.norm.weight': { dtype: 'F32', shape: [6], data: numbers },
    'b.norm.weight': { dtype: 'BF16', shape: [4], data: bits },
    'c.norm.weight': { dtype: 'F64', shape: [1], data: Float64Array.from([1.5]) },
    'd.norm.weight': { dtype: 'F16', shape: [1], data: Uint16Array.from([0x3e00]) },
    'layer.weight': values(32, 32),
  };
  const { dtypes, data } = await cast(t, folderWith(t, tensors, config), 'bfloat16');
  assert.deepEqual([...new Set(Object.values(dtypes))], ['BF16']);
  const words = (name) => [...new Uint16Array(data(name).slice().buffer)];
  assert.deepEqual(words('a.norm.weight'), [0x3f80, 0x3f80, 0x3f82, 0x8000, 0x0001, 0x7f62]);
  assert.deepEqual(words('b.norm.weight'), [...bits]);
  assert.deepEqual([words('c.norm.weight'), words('d.norm.weight')], [[0x3fc0], [0x3fc0]]);
});

test('a model that is one embedding is cast, and excluded layers are not', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = folderWith(t, { 'embedding.weight': values(50, 8) }, config);
  assert.deepEqual((await cast(t, folder, 'float16')).dtypes, { 'embedding.weight': 'F16' });
  const model = await modelFor(t, quantizer, folderWith(t, floats, config));
  const preset = quantizer.presetConfig('bfloat16', { exclude: ['lm_head'] });
  const plan = await quantizer.plan(model, preset, { format: 'fake-quantized' });
  const outputs = new Map(plan.tensors.map(({ name, outputs }) => [name, outputs?.[0]?.dtype]));
  assert.equal(outputs.get('lm_head.weight'), 'F32');
  assert.equal(outputs.get('conv.weight'), 'BF16');
});

test("a config in Quark's words casts the layers that it names, as Quark does", async (t) => {
  const quark = { global_quant_config: { weight: { dtype: 'bfloat16' } } };
  const { dtypes, text } = await cast(t, folderWith(t, floats, config), quark);
  assert.equal(dtypes['encoder.layer.0.attention.self.query.weight'], 'BF16');
  assert.equal(dtypes['embeddings.word_embeddings.weight'], 'F32');
  assert.equal(dtypes['encoder.layer.0.LayerNorm.weight'], 'F32');
  assert.equal(JSON.parse(text).torch_dtype, 'float32');
});

test('the sample is half as large', async (t) => {
  const { dtypes } = await cast(t, tinyLlama, 'bfloat16');
  assert.deepEqual([...new Set(Object.values(dtypes))], ['BF16']);
});
