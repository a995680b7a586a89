// Sources that are not what they look like: adapters, names with a wrapper's prefix, weights in float64, models of which nothing
// would be quantized.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { gguf, noise, parsed, safetensors } from '../written_model.mjs';

const size = 64;
const f32 = (seed, shape = [size, size]) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
});
const names = ['model.embed_tokens', 'model.layers.0.self_attn.q_proj', 'model.layers.0.mlp.down_proj'];
const weights = (rename = (name) => name) =>
  Object.fromEntries(names.map((name, seed) => [rename(`${name}.weight`), f32(seed + 1)]));
const config = { model_type: 'llama', architectures: ['LlamaForCausalLM'], tie_word_embeddings: true };

function folderOf(t, files) {
  const folder = join(scratchFolder(t), 'in');
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), content instanceof Uint8Array ? content : JSON.stringify(content));
  return folder;
}

async function bytesOf(t, quantizer, source, preset, options) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, preset, { target: out.stream, ...options });
  return { report, bytes: out.bytes() };
}

test('an adapter is refused with what to do, in every form, before anything is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const layer = 'base_model.model.model.layers.0.self_attn.q_proj';
  const factors = (a, b) => safetensors({ [`${layer}.${a}`]: f32(1, [8, size]), [`${layer}.${b}`]: f32(2, [size, 8]) });
  const adapter_config = { peft_type: 'LORA', r: 8, base_model_name_or_path: 'x' };
  for (const [tensors, files] of [
    [factors('lora_A.weight', 'lora_B.weight'), { 'adapter_config.json': adapter_config }],
    [factors('lora_A.weight', 'lora_B.weight'), { 'config.json': config, 'adapter_config.json': adapter_config }],
    [factors('lora_A.default.weight', 'lora_B.default.weight'), {}],
    [factors('lora_down.weight', 'lora_up.weight'), {}],
    [factors('lokr_w1', 'lokr_w2'), {}],
    [safetensors({ prompt_embeddings: f32(1) }), { 'adapter_config.json': { peft_type: 'PROMPT_TUNING' } }],
  ]) {
    const folder = folderOf(t, { 'adapter_model.safetensors': tensors, ...files });
    const out = join(folder, '../out');
    for (const format of ['compressed-tensors', 'fake-quantized', 'gguf']) {
      const preset = format === 'gguf' ? 'q8_0' : 'int8';
      const { code, document } = await cliJson(['quantize', folder, '-o', out, '--preset', preset, '--format', format]);
      assert.equal(code, 1);
      assert.match(document.error.message, /adapter.*merge it into its model first.*merge_and_unload/);
      assert.equal(existsSync(out), false);
    }
  }
  const ggufAdapter = gguf(
    { 'general.architecture': 'llama', 'general.type': 'adapter' },
    'blk.0.attn_q.weight.lora_a',
  );
  await assert.rejects(bytesOf(t, quantizer, ggufAdapter, 'q4_k_m'), /is an adapter \(general\.type\)/);
  const model = gguf({ 'general.architecture': 'llama', 'general.type': 'model' }, 'blk.0.attn_q.weight');
  await bytesOf(t, quantizer, model, 'q8_0');
});

test('parts of an adapter next to their weights are refused, except for classes that load them so', async (t) => {
  const unmerged = {
    'model.layers.0.self_attn.q_proj.base_layer.weight': f32(1),
    'model.layers.0.self_attn.q_proj.lora_A.speech.weight': f32(2, [8, size]),
    'model.layers.0.self_attn.q_proj.lora_B.speech.weight': f32(3, [size, 8]),
  };
  const run = (more) =>
    cliJson([
      'plan',
      folderOf(t, { 'model.safetensors': safetensors(unmerged), 'config.json': { ...config, ...more } }),
      '-p',
      'int8',
    ]);
  const { document } = await run({});
  assert.match(document.error.message, /part of an adapter that is not merged into the weights of the same model/);
  assert.equal((await run({ speech_lora: { r: 8 } })).code, 0);
});

test("names with a wrapper's prefix get a warning; stripped on request they give the plain model's file", async (t) => {
  const quantizer = await quantizerFor(t);
  const plain = folderOf(t, { 'model.safetensors': safetensors(weights()), 'config.json': config });
  const output = (folder) => join(folder, '../out');
  const read = (folder, name) => readFileSync(join(output(folder), name));
  const run = (folder, ...flags) =>
    cliJson(['quantize', folder, '-o', output(folder), '--force', '-p', 'int8', ...flags]);
  await run(plain);
  for (const wrap of [
    (name) => `_orig_mod.${name}`,
    (name) => `module.${name}`,
    (name) => `base_model.model.${name}`,
    (name) => `module._orig_mod.${name}`,
    (name) => `base_model.model._orig_mod.module.${name}`,
    (name) => name.replace('layers.0.', 'layers.0._orig_mod.').replace(/^/, 'module.'),
    (name) => name.replace('.mlp.', '._checkpoint_wrapped_module.mlp.').replace(/^/, '_fsdp_wrapped_module.'),
  ]) {
    const wrapped = safetensors(weights(wrap));
    const folder = folderOf(t, { 'model.safetensors': wrapped, 'config.json': config });
    const warned = await run(folder);
    const warning = warned.document.diagnostics.find(({ code }) => code === 'wrapped-names');
    assert.equal(warning?.severity, 'warning');
    assert.match(warning.message, /is the first of 3 names .* no runtime finds these weights/);
    assert.match(warning.hint, /--strip-prefix \(stripPrefix when the model is opened\) names it model\./);
    const stripped = await run(folder, '--strip-prefix');
    assert.equal(
      stripped.document.diagnostics.some(({ code }) => code === 'wrapped-names'),
      false,
    );
    for (const name of ['model.safetensors', 'config.json'])
      assert.deepEqual(read(folder, name), read(plain, name), name);
    const model = await quantizer.open(folder, { stripPrefix: true });
    assert.deepEqual(model.tensors.map(({ name }) => name).sort(), Object.keys(weights()).sort());
    await model.close();
  }
});

test('shards: the written index has the stripped names; two tensors of one name are refused', async (t) => {
  const entries = Object.entries(weights((name) => `module.${name}`));
  const shard = (number) => `model-0000${number}-of-00002.safetensors`;
  const folder = folderOf(t, {
    [shard(1)]: safetensors(Object.fromEntries(entries.slice(0, 1))),
    [shard(2)]: safetensors(Object.fromEntries(entries.slice(1))),
    'model.safetensors.index.json': {
      metadata: {},
      weight_map: Object.fromEntries(entries.map(([name], i) => [name, shard(i === 0 ? 1 : 2)])),
    },
    'config.json': config,
  });
  const out = join(folder, '../out');
  const { code } = await cli([
    'quantize',
    folder,
    '-o',
    out,
    '-p',
    'int8',
    '--format',
    'fake-quantized',
    '--strip-prefix',
  ]);
  assert.equal(code, 0);
  const { weight_map } = JSON.parse(readFileSync(join(out, 'model.safetensors.index.json')));
  assert.deepEqual(Object.keys(weight_map).sort(), Object.keys(weights()).sort());
  for (const [name, file] of Object.entries(weight_map)) assert.ok(parsed(readFileSync(join(out, file))).header[name]);

  const twice = safetensors({ ...weights(), ...weights((name) => `module.${name}`) });
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(twice, { stripPrefix: true }), { code: 'tensor-duplicate' });
  await assert.rejects(quantizer.open(twice, { stripPrefix: 'yes' }), { code: 'argument-invalid' });
});

test('float64 weights give the files of their float32 values, with a note', async (t) => {
  const quantizer = await quantizerFor(t);
  const plain = safetensors(weights());
  const doubled = safetensors(
    Object.fromEntries(
      Object.entries(weights()).map(([name, { shape, data }]) => [
        name,
        { dtype: 'F64', shape, data: Float64Array.from(data) },
      ]),
    ),
  );
  const linear = names.slice(1).map((name) => `${name}.`);
  for (const [preset, format] of [
    ['int8', 'compressed-tensors'],
    ['int4_wo_32', 'quark'],
    ['int4_wo_32', 'gptq'],
    ['fp8', 'fake-quantized'],
    ['bfloat16', 'fake-quantized'],
  ]) {
    const expected = parsed((await bytesOf(t, quantizer, plain, preset, { format })).bytes);
    const { bytes, report } = await bytesOf(t, quantizer, doubled, preset, { format });
    const found = parsed(bytes);
    for (const name of Object.keys(expected.header)) {
      if (!linear.some((layer) => name.startsWith(layer))) continue;
      assert.equal(found.header[name].dtype, expected.header[name].dtype, `${format} ${name}`);
      assert.deepEqual(found.data(name), expected.data(name), `${format} ${name}`);
    }
    const note = report.diagnostics.find(({ code }) => code === 'float64-read');
    assert.match(note.message, /tensors in float64: their values are rounded to float32/);
    assert.ok(report.tensors.filter(({ action }) => action === 'quantize').every(({ error }) => error.sqnrDb > 15));
  }
  const huge = safetensors({
    'a.up_proj.weight': { dtype: 'F64', shape: [8, 8], data: new Float64Array(64).fill(1e300) },
  });
  await assert.rejects(bytesOf(t, quantizer, huge, 'int8'), { code: 'value-not-finite' });
});

test('a run that would quantize nothing fails: exit 1, no output, the reason and a remedy', async (t) => {
  const quantizer = await quantizerFor(t);
  const integers = safetensors({ 'a.weight': { dtype: 'I32', shape: [8, 8], data: new Int32Array(64) } });
  const norms = safetensors({ 'model.norm.weight': f32(1, [size]) });
  const nothing = { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['*'] };
  for (const [bytes, spec, format, why] of [
    [integers, 'int8', 'quark', /only weights in floats can be quantized/],
    [norms, 'int8', 'fake-quantized', /100\.0 % of the parameters are left/],
    [safetensors(weights()), nothing, 'compressed-tensors', /excluded by/],
    [gguf({ 'general.architecture': 'llama' }, 'blk.0.attn_norm.weight'), 'q4_k_m', 'gguf', /norms and other small/],
  ]) {
    const model = await modelFor(t, quantizer, bytes);
    const [first] = (await quantizer.plan(model, spec, { format })).diagnostics;
    assert.deepEqual([first.severity, first.code], ['error', 'nothing-quantized']);
    assert.match(first.message, why);
    assert.match(first.hint, /plan shows why each tensor is left/);
    const out = memoryStream();
    await assert.rejects(quantizer.quantizeModel(model, spec, { format, target: out.stream }), (error) => {
      assert.equal(error.code, 'nothing-quantized');
      assert.equal(error.diagnostics[0].code, 'nothing-quantized');
      return true;
    });
  }
  const folder = folderOf(t, { 'model.safetensors': norms });
  const planned = await cliJson(['plan', folder, '-p', 'int8']);
  assert.deepEqual([planned.code, planned.document.diagnostics[0].severity], [1, 'error']);
  const out = join(folder, '../out');
  const run = await cliJson(['quantize', folder, '-o', out, '-p', 'int8']);
  assert.deepEqual([run.code, run.document.error.code, existsSync(out)], [1, 'nothing-quantized', false]);
  const shown = await cli(['quantize', folder, '-o', out, '-p', 'int8']);
  assert.match(shown.stderr, /no part of this model would be quantized/);

  // Work that quantizes nothing and is asked for.
  await bytesOf(t, quantizer, safetensors(weights()), 'bfloat16', { format: 'fake-quantized' });
});

test('a format that can store none of the quantized weights refuses them, also where others are only cast', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, safetensors(weights()));
  const int2 = { weight: { dtype: 'int2', qscheme: 'per_tensor' } };
  const cast = { '*down_proj': { weight: { dtype: 'bfloat16' } } };
  const config = { global_quant_config: int2, layer_quant_config: cast, default_exclusions: true };
  await assert.rejects(() => quantizer.plan(model, config, { format: 'quark' }), { code: 'format-unsupported' });
});
