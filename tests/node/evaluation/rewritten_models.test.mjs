// tiny-llama in the arrangements of other families, which compute the same: queries, keys and values in one matrix, gate and up in another
// (Phi-3), and the feed-forward as two experts of half the width that every token sees (Mixtral).
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';
import { parsed, safetensors } from '../written_model.mjs';

const source = parsed(new Uint8Array(readFileSync(join(tinyLlama, 'model.safetensors'))));
const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
const validation = tokensOf('validation', 8);

/** Rows one after another. */
function joined(...names) {
  const parts = names.map((name) => source.data(name));
  const [{ dtype, shape }] = names.map((name) => source.header[name]);
  const rows = names.reduce((sum, name) => sum + source.header[name].shape[0], 0);
  return { dtype, shape: [rows, shape[1]], data: new Uint8Array(Buffer.concat(parts)) };
}

const plain = (name) => ({ ...source.header[name], data: source.data(name) });

/** The half of a matrix's rows or columns; columns times two, which bfloat16 and float32 hold. */
function half(name, second, byColumns) {
  const { dtype, shape } = source.header[name];
  const [rows, columns] = shape;
  const Bits = dtype === 'F32' ? Uint32Array : Uint16Array;
  const bytes = source.data(name);
  const all = new Bits(bytes.buffer, bytes.byteOffset, rows * columns);
  if (!byColumns) {
    const data = all.slice((second * rows * columns) / 2, ((1 + second) * rows * columns) / 2);
    return { dtype, shape: [rows / 2, columns], data };
  }
  const twice = { F32: 1 << 23, BF16: 1 << 7, F16: 1 << 10 }[dtype]; // of the exponent
  const data = new Bits((rows * columns) / 2);
  for (let i = 0; i < data.length; ++i) {
    const value = all[Math.floor(i / (columns / 2)) * columns + second * (columns / 2) + (i % (columns / 2))];
    data[i] = value === 0 ? 0 : value + twice;
  }
  return { dtype, shape: [rows, columns / 2], data };
}

/** A model folder: the tensors that all families share, and those of `layerOf(prefix)` for each layer. */
function write(folder, changes, layerOf) {
  const tensors = {};
  for (const name of Object.keys(source.header)) {
    if (name === '__metadata__' || /self_attn\.[qkv]_proj|mlp\./.test(name)) continue;
    tensors[name] = plain(name);
  }
  for (let layer = 0; layer < config.num_hidden_layers; ++layer)
    Object.assign(tensors, layerOf(`model.layers.${layer}.`));
  mkdirSync(folder);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...changes }));
}

function writeFused(folder) {
  const changes = { model_type: 'phi3', architectures: ['Phi3ForCausalLM'], sliding_window: null };
  write(folder, changes, (layer) => ({
    [`${layer}self_attn.qkv_proj.weight`]: joined(
      ...['q', 'k', 'v'].map((part) => `${layer}self_attn.${part}_proj.weight`),
    ),
    [`${layer}mlp.gate_up_proj.weight`]: joined(`${layer}mlp.gate_proj.weight`, `${layer}mlp.up_proj.weight`),
    [`${layer}mlp.down_proj.weight`]: plain(`${layer}mlp.down_proj.weight`),
  }));
}

function writeMixture(folder) {
  const sizes = { num_local_experts: 2, num_experts_per_tok: 2, intermediate_size: config.intermediate_size / 2 };
  const changes = { ...sizes, model_type: 'mixtral', architectures: ['MixtralForCausalLM'], sliding_window: null };
  write(folder, changes, (layer) => {
    const router = { dtype: 'F32', shape: [2, config.hidden_size], data: new Float32Array(2 * config.hidden_size) };
    const out = { [`${layer}block_sparse_moe.gate.weight`]: router };
    for (const part of ['q', 'k', 'v'])
      out[`${layer}self_attn.${part}_proj.weight`] = plain(`${layer}self_attn.${part}_proj.weight`);
    for (const expert of [0, 1]) {
      const at = `${layer}block_sparse_moe.experts.${expert}.`;
      out[`${at}w1.weight`] = half(`${layer}mlp.gate_proj.weight`, expert, false);
      out[`${at}w3.weight`] = half(`${layer}mlp.up_proj.weight`, expert, false);
      out[`${at}w2.weight`] = half(`${layer}mlp.down_proj.weight`, expert, true);
    }
    return out;
  });
}

async function lossOf(t, quantizer, folder, options = {}) {
  const lm = quantizer.languageModel(await modelFor(t, quantizer, folder));
  return (await lm.evaluate({ tokens: validation, ...options })).bitsPerToken;
}

test('joined matrices and experts compute what the model that they are made of does, in any tile and with a cache', async (t) => {
  const work = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  writeFused(join(work, 'fused'));
  writeMixture(join(work, 'mixture'));
  const expected = await lossOf(t, quantizer, tinyLlama);
  const continuation = async (folder) => {
    const lm = quantizer.languageModel(await modelFor(t, quantizer, folder));
    return (await lm.generate({ tokens: [1, 20, 200, 40], count: 12 })).tokens;
  };
  const tokens = await continuation(tinyLlama);
  for (const name of ['fused', 'mixture']) {
    const found = await lossOf(t, quantizer, join(work, name));
    assert.ok(Math.abs(found - expected) < 1e-5 * expected, `${name}: ${found}, ${expected}`);
    assert.deepEqual(await continuation(join(work, name)), tokens);
  }
});

test('AWQ and GPTQ of joined matrices are better than rounding to nearest', async (t) => {
  const work = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  writeFused(join(work, 'fused'));
  const model = await modelFor(t, quantizer, join(work, 'fused'));
  const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
  const losses = {};
  for (const name of ['nearest', 'awq', 'gptq', 'cle']) {
    const algo_config = name === 'nearest' ? [] : [{ name }];
    const quantization = { global_quant_config: { weight }, exclude: ['lm_head'], algo_config };
    const target = join(work, name);
    await quantizer.quantizeModel(model, quantization, { target, calibration: { tokens: tokensOf('calib', 8) } });
    losses[name] = await lossOf(t, quantizer, target);
  }
  for (const name of ['awq', 'gptq', 'cle']) assert.ok(losses[name] < losses.nearest - 0.02, JSON.stringify(losses));
});

test('a mixture is quantized without tokens and run; choosing specs of its layers is refused by name', async (t) => {
  const work = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  writeMixture(join(work, 'mixture'));
  const model = await modelFor(t, quantizer, join(work, 'mixture'));
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const quantization = { global_quant_config: { weight }, exclude: ['lm_head', '*gate'] };
  await quantizer.quantizeModel(model, quantization, { target: join(work, 'int8') });
  const [before, after] = [
    await lossOf(t, quantizer, join(work, 'mixture')),
    await lossOf(t, quantizer, join(work, 'int8')),
  ];
  assert.ok(after !== before && Math.abs(after - before) < 0.05, `${before}, ${after}`);
  const calibration = { tokens: tokensOf('calib', 1) };
  await assert.rejects(quantizer.languageModel(model).autoConfig({ calibration, targetBits: 5 }), {
    code: 'not-implemented',
    message: /mixtures of experts such as "mixtral"/,
  });
});
