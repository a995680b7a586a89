// One second scale of NVFP4 for layers that vLLM joins: the same bytes whatever the threads, the shards, the parts of a
// run and its interruption; also after calibration; and heads that are tied to the embedding, in files for AMD Quark.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const joined = [
  ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'],
  ['mlp.gate_proj', 'mlp.up_proj'],
];
const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
const scaled = (values, factor) => values.map((value) => value * factor);
const f32 = (shape, factor, seed) => ({
  dtype: 'F32',
  shape,
  data: scaled(noise(shape[0] * (shape[1] ?? 1), seed), factor),
});

/** One layer per file; magnitudes of the parts differ by powers of 10. */
function writeModel(folder) {
  mkdirSync(folder);
  const shapes = {
    'self_attn.q_proj': [1024, 1024],
    'self_attn.k_proj': [64, 1024],
    'self_attn.v_proj': [64, 1024],
    'mlp.gate_proj': [512, 1024],
    'mlp.up_proj': [512, 1024],
  };
  const weightMap = {};
  for (const [at, [layer, shape]] of Object.entries(shapes).entries()) {
    const name = `model.layers.0.${layer}.weight`;
    const file = `model-${String(at + 1).padStart(5, '0')}-of-00005.safetensors`;
    writeFileSync(join(folder, file), safetensors({ [name]: f32(shape, 10 ** -at, at + 1) }));
    weightMap[name] = file;
  }
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ model_type: 'llama', architectures: ['LlamaForCausalLM'] }),
  );
  return folder;
}

function tensorsOf(folder, { files }) {
  const all = new Map();
  for (const { name } of files.filter(({ name: file }) => file.endsWith('.safetensors'))) {
    const { header, data } = parsed(new Uint8Array(readFileSync(join(folder, name))));
    for (const tensor of Object.keys(header)) if (tensor !== '__metadata__') all.set(tensor, data(tensor));
  }
  return all;
}

const scalesOf = (tensors, layers, suffix = 'weight_global_scale') =>
  new Set(layers.map((layer) => String(tensors.get(`model.layers.0.${layer}.${suffix}`))));

test('parts in other files, by any number of threads, tiles and machines, get one scale and the same bytes', async (t) => {
  const folder = scratchFolder(t);
  const source = writeModel(join(folder, 'model'));
  const outputs = [];
  for (const [at, options] of [{ threads: 0 }, { threads: 3, memoryBudgetBytes: 128 * 2 ** 20 }].entries()) {
    const quantizer = await createQuantizer(options);
    const model = await quantizer.open(source);
    const target = join(folder, `whole-${at}`);
    outputs.push(tensorsOf(target, await quantizer.quantizeModel(model, 'nvfp4', { target })));
    if (at === 0) {
      const [{ error }] = await quantizer.preview(model, 'nvfp4', ['model.layers.0.mlp.up_proj.weight']);
      const whole = await quantizer.quantizeModel(model, 'nvfp4', { target: join(folder, 'again') });
      assert.deepEqual(error, whole.tensors.find(({ name }) => name.includes('up_proj')).error);
      const target = join(folder, 'parts');
      for (const part of [2, 1, 3]) await quantizer.quantizeModel(model, 'nvfp4', { target, shards: { part, of: 3 } });
      outputs.push(tensorsOf(target, await quantizer.mergeShards(target)));
    }
    await model.close();
    await quantizer[Symbol.asyncDispose]();
  }
  for (const layers of joined) assert.equal(scalesOf(outputs[0], layers).size, 1);
  for (const other of outputs.slice(1)) assert.deepEqual(other, outputs[0]);
});

test('calibrated weights share the scale that they have when the first of them is rounded', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { config: nvfp4 } = quantizer.presets().find(({ name }) => name === 'nvfp4');
  const data = Int32Array.from({ length: 256 }, (_, at) => (at * 7) % config.vocab_size);
  const calibration = { tokens: { data, shape: [4, 64] } };
  for (const [at, algorithms] of [
    { algo_config: [{ name: 'gptq' }] },
    { algo_config: [{ name: 'gptq', static_groups: false, desc_act: false }] },
    { algo_config: [{ name: 'awq' }] },
    { pre_quant_opt_config: [{ name: 'smoothquant', alpha: 0.5 }] },
  ].entries()) {
    const target = join(folder, String(at));
    const report = await quantizer.quantizeModel(model, { ...nvfp4, ...algorithms }, { target, calibration });
    const tensors = tensorsOf(target, report);
    for (const layers of joined) assert.equal(scalesOf(tensors, layers).size, 1, JSON.stringify(algorithms));
    for (const { name, error } of report.tensors)
      if (error) assert.ok(error.sqnrDb > 10, `${JSON.stringify(algorithms)}: ${name} keeps ${error.sqnrDb} dB`);
  }
});

test('a tied head is excluded from files for AMD Quark, and patterns may name it', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = join(folder, 'tied');
  mkdirSync(source);
  writeFileSync(join(source, 'config.json'), JSON.stringify({ ...config, tie_word_embeddings: true }));
  const { header, data } = parsed(new Uint8Array(readFileSync(join(tinyLlama, 'model.safetensors'))));
  const kept = Object.entries(header).filter(([name]) => name !== '__metadata__' && !name.startsWith('lm_head'));
  const tensors = kept.map(([name, { dtype, shape }]) => [name, { dtype, shape, data: data(name) }]);
  writeFileSync(join(source, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
  const model = await modelFor(t, quantizer, source);
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const global_quant_config = { weight };
  for (const format of ['quark', 'compressed-tensors']) {
    for (const exclude of [[], ['*down_proj'], ['lm_head'], ['*head*'], ['re:.*lm_head']]) {
      const { quantizationConfig, diagnostics } = await quantizer.plan(
        model,
        { global_quant_config, exclude },
        { format },
      );
      const left = quantizationConfig.exclude ?? quantizationConfig.ignore;
      assert.ok(left.includes('lm_head') || left.includes('*head*'), `${format} ${exclude}`);
      assert.ok(!diagnostics.some(({ code }) => code === 'pattern-unused'), `${format} ${exclude}`);
    }
    const named = { global_quant_config, layer_quant_config: { lm_head: { weight } } };
    const [remark] = (await quantizer.plan(model, named, { format })).diagnostics.filter(
      ({ code }) => code === 'pattern-unused',
    );
    assert.match(remark.message, /tied to the embedding/);
  }
  const embedding = { global_quant_config, layer_quant_config: { 'model.embed_tokens': { weight } } };
  await assert.rejects(
    () => quantizer.plan(model, embedding, { format: 'quark' }),
    /type Embedding, whose scales no loader applies/,
  );
});
