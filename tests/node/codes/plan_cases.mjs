// For each code of a plan, or of a model that is opened: a model and a config that have it. A case gets `Provoker` and resolves to
// diagnostics.
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';
import { group, quark, weight } from './config_cases.mjs';

const matrix = (rows, columns, seed = 1) => ({
  dtype: 'F32',
  shape: [rows, columns],
  data: noise(rows * columns, seed),
});
const matrices = (names, rows = 64, columns = 64) =>
  Object.fromEntries(names.map((name, i) => [name, matrix(rows, columns, i + 1)]));
const attention = (part) => `model.layers.0.self_attn.${part}_proj.weight`;
const llama = { model_type: 'llama', architectures: ['LlamaForCausalLM'] };
const mixture = { model_type: 'qwen3_moe', architectures: ['Qwen3MoeForCausalLM'] };
const expert = (part) => `model.layers.0.mlp.experts.0.${part}_proj.weight`;
const rotation = (rest) => ({
  name: 'rotation',
  scaling_layers: { first_layer: [], middle_layers: [], last_layer: [] },
  ...rest,
});

export const planCases = {
  'tensor-unmapped': async (c) => {
    const folder = c.folder();
    cpSync(join(tinyLlama, 'bf16'), folder, { recursive: true });
    const path = join(folder, 'model.safetensors.index.json');
    const index = JSON.parse(readFileSync(path, 'utf8'));
    delete index.weight_map[Object.keys(index.weight_map)[0]];
    writeFileSync(path, JSON.stringify(index));
    return (await c.open(folder)).diagnostics;
  },
  'link-outside': async (c) => {
    const folder = c.modelFolder(matrices([attention('q')]), llama);
    writeFileSync(join(folder, '../secret.json'), '{}');
    symlinkSync('../secret.json', join(folder, 'tokenizer.json'));
    return (await c.open(folder)).diagnostics;
  },
  'wrapped-names': (c) => c.plan(matrices([`_orig_mod.${attention('q')}`]), 'int8', {}, llama),
  'option-lost': (c) => {
    const weight_quant = { n_bits: 8, range_estimator: 'MSE' };
    const config = { module_qconfig_map: { Linear: { module_qconfig: { weight_quant } } } };
    return c.quantizer.convertConfig(config, 'quark').losses;
  },
  'pattern-unused': (c) => c.plan(tinyLlama, quark(weight(), { exclude: ['no.such.layer'] })),
  'output-larger': (c) => c.plan(matrices([attention('q')], 8, 8), 'int8'),
  'low-coverage': (c) => c.plan(tinyLlama, quark(weight(), { exclude: ['*mlp*', 'lm_head'] })),
  'embeddings-large': (c) =>
    c.plan(matrices(['model.embed_tokens.weight', attention('q'), attention('k')], 64, 64), 'int8', {}, llama),
  'tied-weights': (c) =>
    c.plan(
      matrices(['model.embed_tokens.weight', attention('q')]),
      { layer_type_quant_config: { Embedding: { weight: { dtype: 'int8' } } } },
      { format: 'fake-quantized' },
    ),
  'float64-read': (c) => {
    const { shape, data } = matrix(64, 64);
    return c.plan({ 'a.weight': { dtype: 'F64', shape, data: Float64Array.from(data) } }, 'int8');
  },
  'group-fallback': (c) => c.plan(tinyLlama, 'int4_wo_128'),
  'fused-layers': (c) => c.plan(tinyLlama, quark(weight(), { layer_quant_config: { '*q_proj': { weight: group() } } })),
  'loader-limit': (c) => c.plan(tinyLlama, 'mxfp8', { format: 'quark' }),
  'loader-version': (c) => {
    const names = ['gate', 'up', 'down'].map(expert);
    return c.plan(matrices([attention('q'), ...names]), 'int8', {}, { ...mixture, num_experts: 1 });
  },
  'loader-option': (c) => c.plan(tinyLlama, 'uint4_wo_64'),
  requantized: (c) =>
    c.plan(
      { 'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data: new Uint8Array(1024).fill(0x38) } },
      quark(group()),
    ),
  'routers-left': (c) =>
    c.plan(matrices(['model.layers.0.mlp.gate.weight', expert('gate')]), quark(weight()), { format: 'quark' }, mixture),
  'dtype-promoted': (c) =>
    c.plan(
      { 'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data: new Uint8Array(1024).fill(0x38) } },
      quark(group()),
      {
        format: 'fake-quantized',
      },
    ),
  'head-untied': (c) => {
    const tensors = readTensors(join(tinyLlama, 'model.safetensors'));
    tensors.delete('lm_head.weight');
    const settings = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
    const config = quark(group(), { algo_config: [rotation({ r1: true, r2: false })] });
    return c.plan(
      Object.fromEntries(tensors),
      config,
      { format: 'fake-quantized' },
      { ...settings, tie_word_embeddings: true },
    );
  },
  'online-rotation': (c) =>
    c.plan(tinyLlama, quark(group(), { algo_config: [rotation({ r1: false, r4: true })] }), {
      format: 'fake-quantized',
    }),
  'cache-scales': (c) =>
    c.plan(
      {
        ...matrices(['q', 'k', 'v'].map(attention)),
        'model.layers.0.self_attn.k_scale': { dtype: 'F32', shape: [], data: Float32Array.of(0.5) },
      },
      'int8',
      {},
      llama,
    ),
  'type-fallback': (c) => c.plan(tinyLlama, 'q4_k_m'),
  'needs-importance': (c) => c.plan(tinyLlama, 'q2_k_s'),
  'tokenizer-missing': (c) => c.plan(c.without('tokenizer.json'), 'q8_0'),
  'pretokenizer-unknown': (c) =>
    c.plan(
      c.changed('tokenizer.json', (tokenizer) => ({
        ...tokenizer,
        model: { ...tokenizer.model, merges: ['t h'] },
      })),
      'q8_0',
    ),
  'tokenizer-bytes-missing': (c) => {
    const tokenizer = {
      model: { type: 'BPE', byte_fallback: true, vocab: { '<unk>': 0, a: 1, b: 2 }, merges: [] },
      added_tokens: [{ id: 0, content: '<unk>', special: true }],
      normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      decoder: { type: 'ByteFallback' },
    };
    return c.plan(
      c.changed('tokenizer.json', () => tokenizer),
      'q8_0',
    );
  },
  'tokens-lost': (c) =>
    c.plan(
      c.changed('tokenizer.json', (tokenizer) => ({
        ...tokenizer,
        added_tokens: [...(tokenizer.added_tokens ?? []), { id: 5000, content: '<far>', special: true }],
      })),
      'q8_0',
    ),
  'attention-scale-lost': (c) => {
    const gemma = { ...c.settings(), model_type: 'gemma2', query_pre_attn_scalar: 7, head_dim: 64 };
    return c.plan(
      c.changed('config.json', () => gemma),
      'q8_0',
    );
  },
  'tensors-left-out': (c) => {
    const tensors = Object.fromEntries(readTensors(join(tinyLlama, 'model.safetensors')));
    tensors['vision_tower.patch.weight'] = matrix(32, 32);
    const folder = c.changed('config.json', () => ({ ...c.settings(), model_type: 'gemma3' }));
    rmSync(join(folder, 'model.safetensors'));
    writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
    return c.plan(folder, 'q8_0');
  },
};
