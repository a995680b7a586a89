// Names of a model beside those that the class of its config.json has: what is certainly missing or foreign is an error before
// anything is written, what is only likely a warning. `npm run test:families` plans 301 families, of which none may be refused.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const matrices = (names) =>
  Object.fromEntries(names.map((name, i) => [name, { dtype: 'F32', shape: [8, 8], data: noise(64, i + 1) }]));
const layersOf = (count, parts) =>
  Array.from({ length: count }, (_, i) => parts.map((part) => `model.layers.${i}.${part}.weight`)).flat();
const block = ['self_attn.q_proj', 'self_attn.k_proj', 'mlp.up_proj', 'mlp.down_proj'];
const without = (names, ...left) => names.filter((name) => !left.some((part) => name.includes(part)));
const llama = { model_type: 'llama', architectures: ['LlamaForCausalLM'] };
const mixture = { model_type: 'qwen3_moe', architectures: ['Qwen3MoeForCausalLM'] };
const experts = [0, 1, 2].flatMap((e) => [`model.layers.0.mlp.experts.${e}.up_proj.weight`]);
const linear = ['linear_attn.in_proj', 'mlp.up_proj'];

async function planned(t, names, config) {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'in');
  mkdirSync(folder);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(matrices(names), { format: 'pt' }));
  if (config) writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const target = join(folder, '../out');
  const model = await modelFor(t, quantizer, folder);
  return { target, run: () => quantizer.quantizeModel(model, 'int8', { target }) };
}

/** what: [names, config.json, code, where it is missing or what is foreign]. */
const errors = {
  'a layer in the middle': [
    without(layersOf(3, block), 'layers.1.'),
    { ...llama, num_hidden_layers: 3 },
    'tensor-missing',
    'model.layers.1',
  ],
  'the last layer': [layersOf(2, block), { ...mixture, num_hidden_layers: 3 }, 'tensor-missing', 'model.layers.2'],
  'an expert': [without(experts, 'experts.1.'), mixture, 'tensor-missing', 'model.layers.0.mlp.experts.1'],
  'a projection of a family whose layers are alike': [
    without(layersOf(3, block), 'layers.1.mlp.up_proj'),
    llama,
    'tensor-missing',
    'model.layers.1.mlp.up_proj.weight',
  ],
  "names of Mistral's layout": [
    ['tok_embeddings.weight', 'layers.0.attention.wq.weight'],
    llama,
    'format-unsupported',
    'tok_embeddings.weight',
  ],
  'names of GGUF': [['blk.0.attn_q.weight'], llama, 'format-unsupported', 'blk.0.attn_q.weight'],
  'names of OpenCLIP': [
    ['transformer.resblocks.0.attn.out_proj.weight'],
    { model_type: 'clip', architectures: ['CLIPModel'] },
    'format-unsupported',
    'transformer.resblocks.0.attn.out_proj.weight',
  ],
  'names of mlx-lm in a file that does not say so': [
    ['model.layers.0.mlp.switch_mlp.gate.weight'],
    mixture,
    'format-unsupported',
    'model.layers.0.mlp.switch_mlp.gate.weight',
  ],
};
for (const [what, [names, config, code, where]] of Object.entries(errors))
  test(`refused before anything is written: ${what}`, async (t) => {
    const { target, run } = await planned(t, names, config);
    await assert.rejects(run(), (error) => error.code === code && error.where === where);
    assert.equal(existsSync(target), false);
  });

test('a weight that one layer of an unknown kind lacks is a warning', async (t) => {
  const { run } = await planned(t, without(layersOf(5, block), 'layers.2.mlp.up_proj'), mixture);
  const { diagnostics } = await run();
  const missing = diagnostics.filter(({ code }) => code === 'tensor-missing');
  assert.deepEqual(
    missing.map(({ severity, where }) => [severity, where]),
    [['warning', 'model.layers.2.mlp.up_proj.weight']],
  );
});

const hybrid = without(layersOf(5, [...linear, 'self_attn.q_proj']), 'layers.2.linear_attn').filter(
  (name) => name.includes('layers.2.') || !name.includes('self_attn'),
);
const right = {
  'layers beyond those that config.json counts (MTP)': [layersOf(3, block), { ...llama, num_hidden_layers: 2 }],
  'one layer of another kind': [hybrid, mixture],
  'layers of a hybrid: convolutions in most of them': [
    [
      ...layersOf(5, ['conv.in_proj']).filter((name) => !name.includes('layers.2.')),
      'model.layers.2.self_attn.q_proj.weight',
    ],
    { model_type: 'lfm2', architectures: ['Lfm2ForCausalLM'] },
  ],
  'first and last layers of their own': [without(layersOf(5, block), 'layers.0.mlp.up', 'layers.4.mlp.down'), mixture],
  'two towers with layers': [
    ['text_model.encoder.layers.0.mlp.fc1.weight', 'vision_model.encoder.layers.1.mlp.fc1.weight'],
    { model_type: 'clip', architectures: ['CLIPModel'], num_hidden_layers: 2 },
  ],
  'names that the loader of the class changes': [
    ['transformer.resblocks.0.attn.out_proj.weight'],
    { model_type: 'step3p5_vision', architectures: ['X'] },
  ],
  'names of a class of its own': [
    ['tok_embeddings.weight', 'layers.0.attention.wq.weight'],
    { ...llama, auto_map: { AutoModel: 'modeling.Model' } },
  ],
  'a file without config.json': [['tok_embeddings.weight', 'layers.0.attention.wq.weight'], undefined],
};
for (const [what, [names, config]] of Object.entries(right))
  test(`not refused: ${what}`, async (t) => {
    const { diagnostics } = await (await planned(t, names, config)).run();
    assert.deepEqual(
      diagnostics.filter(({ code }) => code === 'tensor-missing'),
      [],
    );
  });
