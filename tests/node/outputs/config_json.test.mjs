// config.json on its way through a run: what transformers wrote stays byte for byte, but for the keys that we add.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

/** Gemma 2's, as transformers 5.12 writes it: its strict configs refuse 30 for 30.0. */
const gemma2 = `{
  "architectures": [
    "Gemma2ForCausalLM"
  ],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "attn_logit_softcapping": 50.0,
  "bos_token_id": 256,
  "dtype": "float32",
  "eos_token_id": 257,
  "final_logit_softcapping": 30.0,
  "head_dim": 64,
  "hidden_activation": "gelu_pytorch_tanh",
  "hidden_size": 64,
  "initializer_range": 0.02,
  "intermediate_size": 512,
  "layer_types": [
    "sliding_attention",
    "full_attention"
  ],
  "model_type": "gemma2",
  "query_pre_attn_scalar": 64,
  "rms_norm_eps": 1e-06,
  "rope_parameters": {
    "rope_theta": 10000.0,
    "rope_type": "default"
  },
  "tie_word_embeddings": true,
  "transformers_version": "5.12.1",
  "use_bidirectional_attention": null,
  "vocab_size": 288
}
`;

/** Part of Mamba 2's as transformers 4 wrote it, with a number beyond 2^53 and a NaN. */
const mamba2 = `{
  "architectures": [
    "Mamba2ForCausalLM"
  ],
  "chunk_size": 256,
  "layer_norm_epsilon": 1e-05,
  "model_type": "mamba2",
  "seed": 12345678901234567890,
  "time_step_limit": [
    0.0,
    Infinity
  ],
  "bounds": {
    "low": -Infinity,
    "Infinity": "NaN",
    "none": NaN
  },
  "vocab_size": 288
}
`;

const weight = (seed) => ({ dtype: 'F32', shape: [64, 64], data: noise(64 * 64, seed) });

/** A folder with one linear layer and that config.json. */
function modelWith(folder, config, name = 'model') {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'model.safetensors'), safetensors({ 'model.layers.0.mlp.up_proj.weight': weight(1) }));
  writeFileSync(join(path, 'config.json'), config);
  return path;
}

async function runFor(t) {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  /** config.json of the output; `source` is a folder. */
  const run = async (source, name, preset, options = {}) => {
    const model = await modelFor(t, quantizer, source);
    await quantizer.quantizeModel(model, preset, { target: join(folder, name), ...options });
    return readFileSync(join(folder, name, 'config.json'), 'utf8');
  };
  return { quantizer, folder, run };
}

/** The text without the block, which is its last member and has lines of its own. */
function withoutBlock(text, indent = '  ', newline = '\n') {
  const begin = text.indexOf(`,${newline}${indent}"quantization_config": {${newline}`);
  const last = `${newline}${indent}}${newline}}`;
  const end = text.lastIndexOf(last);
  assert.ok(begin > 0 && end > begin, text);
  return text.slice(0, begin) + text.slice(end + last.length - newline.length - 1);
}

test('every format appends its block, and nothing else in the text changes', async (t) => {
  const { folder, run } = await runFor(t);
  const source = modelWith(folder, gemma2);
  for (const [format, preset] of [
    ['compressed-tensors', 'int8'],
    ['quark', 'int8'],
    ['awq', 'uint4_wo_32'],
    ['gptq', 'int4_wo_32'],
  ]) {
    const text = await run(source, format, preset, { format });
    assert.equal(withoutBlock(text), gemma2, format);
    assert.ok(JSON.parse(text).quantization_config.quant_method, format);
  }
  assert.equal(await run(source, 'floats', 'int8', { format: 'fake-quantized' }), gemma2);
});

test("decoding a checkpoint restores the original's text", async (t) => {
  const { folder, run } = await runFor(t);
  for (const [name, text] of Object.entries({ gemma2, mamba2 })) {
    await run(modelWith(folder, text, name), `${name}-int8`, 'int8');
    const config = await run(join(folder, `${name}-int8`), `${name}-floats`, 'int8', { format: 'fake-quantized' });
    assert.equal(config, text);
  }
});

test('the block has the indentation and line endings of the text', async (t) => {
  const { folder, run } = await runFor(t);
  const layouts = { wide: ['    ', '\n'], tabs: ['\t', '\r\n'] };
  for (const [name, [indent, newline]] of Object.entries(layouts)) {
    const text = gemma2.replace(/^ +/gm, (spaces) => indent.repeat(spaces.length / 2)).replaceAll('\n', newline);
    const config = await run(modelWith(folder, text, name), `${name}-out`, 'int8');
    assert.equal(withoutBlock(config, indent, newline), text);
    const lines = config.slice(config.indexOf('"quantization_config"')).split(newline);
    assert.ok(lines.every((line) => /^\s*\S+/.test(line) || line === ''));
    assert.ok(lines.includes(`${indent.repeat(2)}"quant_method": "compressed-tensors",`), config);
  }
  const compact = '{"model_type":"gemma2","cap":30.0}';
  const config = await run(modelWith(folder, compact, 'compact'), 'compact-out', 'int8');
  assert.ok(config.startsWith('{"model_type":"gemma2","cap":30.0,"quantization_config":{"'), config);
  assert.ok(!/\s/.test(config), config);
});

test("Python's constants: the model opens, is quantized, and keeps them", async (t) => {
  const { quantizer, folder, run } = await runFor(t);
  const source = modelWith(folder, mamba2);
  const model = await modelFor(t, quantizer, source);
  assert.deepEqual(model.config.time_step_limit, [0, Number.POSITIVE_INFINITY]);
  assert.deepEqual(model.config.bounds, { low: Number.NEGATIVE_INFINITY, Infinity: 'NaN', none: Number.NaN });
  assert.equal(model.config.layer_norm_epsilon, 1e-5);
  assert.equal(withoutBlock(await run(source, 'out', 'int8')), mamba2);
});

test('a config with constants is converted, evaluated and continued like any other', async (t) => {
  const { quantizer, folder } = await runFor(t);
  const text = readFileSync(join(tinyLlama, 'config.json'), 'utf8');
  const odd = text.replace('{', '{\n  "time_step_limit": [0.0, Infinity, NaN],');
  const models = [];
  for (const [name, config] of Object.entries({ plain: text, odd })) {
    const source = join(folder, name, 'llama'); // GGUF says what the folder is called
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, 'model.safetensors'), readFileSync(join(tinyLlama, 'model.safetensors')));
    writeFileSync(join(source, 'config.json'), config);
    models.push(await modelFor(t, quantizer, source));
  }
  const tokens = { data: Int32Array.from({ length: 64 }, (_, at) => (at * 7) % 200), shape: [2, 32] };
  const found = [];
  for (const [at, model] of models.entries()) {
    const target = join(folder, `${at}.gguf`);
    await quantizer.quantizeModel(model, 'q8_0', { target, format: 'gguf' });
    const { bitsPerToken } = await quantizer.languageModel(model).evaluate({ tokens });
    const { tokens: added } = await quantizer.languageModel(model).generate({ tokens: [1, 2, 3], count: 2 });
    found.push({ bitsPerToken, added, file: readFileSync(target) });
  }
  assert.deepEqual(found[1], found[0]);
});

test('of members of one name the last counts', async (t) => {
  const { quantizer, folder, run } = await runFor(t);
  const text = '{\n  "model_type": "a",\n  "cap": 1.0,\n  "model_type": "gemma2"\n}';
  const source = modelWith(folder, text);
  const model = await modelFor(t, quantizer, source);
  assert.deepEqual(model.config, { model_type: 'gemma2', cap: 1 });
  assert.equal(withoutBlock(await run(source, 'out', 'int8')), text);
});

test('a text that is not JSON is refused at its byte', async (t) => {
  const { quantizer, folder } = await runFor(t);
  const source = modelWith(folder, '{"a": 1,\n"b" 2}');
  await assert.rejects(quantizer.open(source), {
    code: 'json-invalid',
    where: 'config.json',
    message: "config.json: byte 13: expected ':' after a key, found '2'",
  });
});

test('other keys of the index of shards are kept', async (t) => {
  const { folder, quantizer } = await runFor(t);
  const source = join(folder, 'sharded');
  mkdirSync(source);
  const names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  const layers = ['model.layers.0.mlp.up_proj.weight', 'model.layers.1.mlp.up_proj.weight'];
  for (const [at, name] of names.entries())
    writeFileSync(join(source, name), safetensors({ [layers[at]]: weight(at + 1) }));
  const index = (metadata, map) => `{
  "metadata": {
    "total_parameters": 8192.0,
    "total_size": ${metadata}
  },
  "weight_map": {
${map.map(([tensor, file]) => `    "${tensor}": "${file}"`).join(',\n')}
  }
}
`;
  const mapped = layers.map((layer, at) => [layer, names[at]]);
  writeFileSync(join(source, 'model.safetensors.index.json'), index('32768.0', mapped));
  writeFileSync(join(source, 'config.json'), gemma2);
  const model = await modelFor(t, quantizer, source);
  const target = join(folder, 'out');
  const { tensors } = await quantizer.plan(model, 'int8');
  const outputs = tensors.flatMap((tensor) => tensor.outputs);
  await quantizer.quantizeModel(model, 'int8', { target });
  const bytes = outputs.reduce((sum, output) => sum + output.bytes, 0);
  const expected = index(
    String(bytes),
    outputs.map(({ name, file }) => [name, file]),
  );
  assert.equal(readFileSync(join(target, 'model.safetensors.index.json'), 'utf8'), expected);
});
