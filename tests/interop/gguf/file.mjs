// GGUF files written apart from the library under test, and tiny Hugging Face models of every family it converts.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFloats } from '../safetensors_file.mjs';

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

function keyBytes([key, value]) {
  if (Array.isArray(value)) return Buffer.concat([text(key), u32(9), u32(8), u64(value.length), ...value.map(text)]);
  if (typeof value === 'string') return Buffer.concat([text(key), u32(8), text(value)]);
  if (Number.isInteger(value)) return Buffer.concat([text(key), u32(4), u32(value)]);
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([text(key), u32(6), bytes]);
}

/** Writes F32 tensors: Map of name to `{ shape, data }` (C order). `keys`: texts, arrays of them, u32 where whole, else f32. */
export function writeGguf(path, keys, tensors) {
  const header = [Buffer.from('GGUF'), u32(3), u64(tensors.size), u64(Object.keys(keys).length)];
  header.push(...Object.entries(keys).map(keyBytes));
  const data = [];
  let offset = 0;
  for (const [name, tensor] of tensors) {
    header.push(text(name), u32(tensor.shape.length), ...[...tensor.shape].reverse().map(u64), u32(0), u64(offset));
    const bytes = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    const padding = Buffer.alloc((32 - (bytes.length % 32)) % 32);
    data.push(bytes, padding);
    offset += bytes.length + padding.length;
  }
  const head = Buffer.concat(header);
  writeFileSync(path, Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32), ...data]));
}

/** Deterministic values, different for each tensor. */
export function values(count, seed) {
  const data = new Float32Array(count);
  let state = (seed * 2654435761 + 12345) >>> 0;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = (state / 2 ** 32 - 0.5) * 0.2;
  }
  return data;
}

class Tensors extends Map {
  put(name, ...shape) {
    const count = shape.reduce((product, dimension) => product * dimension, 1);
    this.set(name, { shape, data: values(count, this.size + 1) });
    return this;
  }
}

const common = (m) => ({
  hidden_size: m.width,
  num_hidden_layers: m.layers,
  num_attention_heads: m.heads,
  intermediate_size: m.feedForward,
  max_position_embeddings: 64,
  vocab_size: m.vocabulary,
});

/** Decoders whose modules are called as Llama's are. */
function decoder(modelType, m, { config = {}, bias = false, headNorms = false, gemmaNorms = false } = {}) {
  const headWidth = m.headWidth ?? m.width / m.heads;
  const tensors = new Tensors().put('model.embed_tokens.weight', m.vocabulary, m.width);
  for (let i = 0; i < m.layers; ++i) {
    const layer = `model.layers.${i}`;
    const shapes = { q: m.heads * headWidth, k: m.kvHeads * headWidth, v: m.kvHeads * headWidth };
    for (const [name, rows] of Object.entries(shapes)) {
      tensors.put(`${layer}.self_attn.${name}_proj.weight`, rows, m.width);
      if (bias) tensors.put(`${layer}.self_attn.${name}_proj.bias`, rows);
    }
    tensors.put(`${layer}.self_attn.o_proj.weight`, m.width, m.heads * headWidth);
    if (headNorms) {
      tensors.put(`${layer}.self_attn.q_norm.weight`, headWidth);
      tensors.put(`${layer}.self_attn.k_norm.weight`, headWidth);
    }
    tensors.put(`${layer}.mlp.gate_proj.weight`, m.feedForward, m.width);
    tensors.put(`${layer}.mlp.up_proj.weight`, m.feedForward, m.width);
    tensors.put(`${layer}.mlp.down_proj.weight`, m.width, m.feedForward);
    tensors.put(`${layer}.input_layernorm.weight`, m.width);
    tensors.put(`${layer}.post_attention_layernorm.weight`, m.width);
    if (gemmaNorms) {
      tensors.put(`${layer}.pre_feedforward_layernorm.weight`, m.width);
      tensors.put(`${layer}.post_feedforward_layernorm.weight`, m.width);
    }
  }
  tensors.put('model.norm.weight', m.width);
  if (!m.tied) tensors.put('lm_head.weight', m.vocabulary, m.width);
  return {
    config: {
      model_type: modelType,
      ...common(m),
      num_key_value_heads: m.kvHeads,
      head_dim: headWidth,
      rms_norm_eps: 1e-6,
      query_pre_attn_scalar: headWidth, // Gemma's; llama.cpp knows no other
      rope_theta: 10000,
      tie_word_embeddings: Boolean(m.tied),
      ...config,
    },
    tensors,
  };
}

function gpt2(m) {
  const tensors = new Tensors().put('wte.weight', m.vocabulary, m.width).put('wpe.weight', 64, m.width);
  for (let i = 0; i < m.layers; ++i) {
    const layer = `h.${i}`;
    const linear = (name, inputs, outputs) =>
      tensors.put(`${layer}.${name}.weight`, inputs, outputs).put(`${layer}.${name}.bias`, outputs);
    tensors.put(`${layer}.attn.bias`, 1, 1, 64, 64);
    linear('attn.c_attn', m.width, 3 * m.width);
    linear('attn.c_proj', m.width, m.width);
    linear('mlp.c_fc', m.width, 4 * m.width);
    linear('mlp.c_proj', 4 * m.width, m.width);
    for (const norm of ['ln_1', 'ln_2'])
      tensors.put(`${layer}.${norm}.weight`, m.width).put(`${layer}.${norm}.bias`, m.width);
  }
  tensors.put('ln_f.weight', m.width).put('ln_f.bias', m.width);
  const config = { model_type: 'gpt2', n_embd: m.width, n_layer: m.layers, n_head: m.heads, n_positions: 64 };
  return { config: { ...config, n_inner: null, layer_norm_epsilon: 1e-5, vocab_size: m.vocabulary }, tensors };
}

function bert(m) {
  const tensors = new Tensors();
  const embedding = (name, rows) => tensors.put(`embeddings.${name}.weight`, rows, m.width);
  embedding('word_embeddings', m.vocabulary);
  embedding('position_embeddings', 64);
  embedding('token_type_embeddings', 2);
  const pair = (name, ...shape) => tensors.put(`${name}.weight`, ...shape).put(`${name}.bias`, shape[0]);
  pair('embeddings.LayerNorm', m.width);
  for (let i = 0; i < m.layers; ++i) {
    const layer = `encoder.layer.${i}`;
    for (const name of ['query', 'key', 'value']) pair(`${layer}.attention.self.${name}`, m.width, m.width);
    pair(`${layer}.attention.output.dense`, m.width, m.width);
    pair(`${layer}.attention.output.LayerNorm`, m.width);
    pair(`${layer}.intermediate.dense`, m.feedForward, m.width);
    pair(`${layer}.output.dense`, m.width, m.feedForward);
    pair(`${layer}.output.LayerNorm`, m.width);
  }
  pair('pooler.dense', m.width, m.width);
  return { config: { model_type: 'bert', ...common(m), layer_norm_eps: 1e-12, type_vocab_size: 2 }, tensors };
}

const families = {
  llama: (m) => decoder('llama', m),
  llama31: (m) =>
    decoder('llama', m, {
      config: {
        rope_scaling: {
          rope_type: 'llama3',
          factor: 8,
          low_freq_factor: 1,
          high_freq_factor: 4,
          original_max_position_embeddings: 8192,
        },
      },
    }),
  mistral: (m) => decoder('mistral', m),
  qwen2: (m) => decoder('qwen2', m, { bias: true }),
  qwen3: (m) => decoder('qwen3', m, { headNorms: true }),
  gemma: (m) => decoder('gemma', { ...m, tied: true }),
  gemma2: (m) =>
    decoder(
      'gemma2',
      { ...m, tied: true },
      {
        gemmaNorms: true,
        config: { sliding_window: 32, attn_logit_softcapping: 50.5, final_logit_softcapping: 30.5 },
      },
    ),
  gemma3: (m) =>
    decoder(
      'gemma3_text',
      { ...m, tied: true },
      {
        gemmaNorms: true,
        headNorms: true,
        config: { sliding_window: 32, rope_local_base_freq: 10000, rope_theta: 1000000 },
      },
    ),
  gpt2,
  bert,
};
export const familyNames = Object.keys(families);

/** Writes config.json and model.safetensors. */
export function writeModel(folder, family, measures) {
  const { config, tensors } = families[family](measures);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFloats(join(folder, 'model.safetensors'), tensors);
}

/** One token for each printable ASCII character: the vocabulary of models that are to write text. */
export const letters = 95;

/**
 * The same with a tokenizer, and weights of a size that makes every part count: norms near one, attention that looks at
 * some tokens much more than at others.
 */
export function writeLivelyModel(folder, family, measures) {
  const { config, tensors } = families[family]({ ...measures, vocabulary: letters });
  const normsAddOne = family.startsWith('gemma');
  for (const [name, { data }] of tensors) {
    const isNorm = /norm|ln_/.test(name) && name.endsWith('weight');
    const isAttention = /[qk]_proj|c_attn/.test(name);
    for (let i = 0; i < data.length; ++i) {
      if (isNorm) data[i] = 3 * data[i] + (normsAddOne ? 0 : 1);
      if (isAttention) data[i] *= 2;
    }
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFloats(join(folder, 'model.safetensors'), tensors);
  const letter = (i) => (i === 0 ? '\u0120' : String.fromCharCode(32 + i));
  const vocab = Object.fromEntries(Array.from({ length: letters }, (_, i) => [letter(i), i]));
  const tokenizer = {
    model: { type: 'BPE', vocab, merges: [] },
    pre_tokenizer: { type: 'ByteLevel' },
    added_tokens: [],
  };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ add_bos_token: false }));
}

/** A mixture of experts and a Falcon as GGUF: nothing converts to them, but they can be requantized. */
export function writeExperts(path, { layers, experts, width = 256, heads = 8, kvHeads = 2 }) {
  const tensors = new Tensors().put('token_embd.weight', 288, width).put('output.weight', 288, width);
  tensors.put('output_norm.weight', width);
  const kvWidth = (width / heads) * kvHeads;
  for (let i = 0; i < layers; ++i) {
    tensors.put(`blk.${i}.attn_q.weight`, width, width).put(`blk.${i}.attn_output.weight`, width, width);
    tensors.put(`blk.${i}.attn_k.weight`, kvWidth, width).put(`blk.${i}.attn_v.weight`, kvWidth, width);
    tensors.put(`blk.${i}.attn_norm.weight`, width).put(`blk.${i}.ffn_norm.weight`, width);
    tensors.put(`blk.${i}.ffn_gate_inp.weight`, experts, width);
    for (const name of ['gate', 'up', 'down']) tensors.put(`blk.${i}.ffn_${name}_exps.weight`, experts, width, width);
  }
  const keys = ggufKeys('llama', { layers, width, heads, kvHeads, feedForward: width });
  writeGguf(path, { ...keys, 'llama.expert_count': experts, 'llama.expert_used_count': 2 }, tensors);
}

export function writeFalcon(path, { layers, width = 256, heads = 8 }) {
  const tensors = new Tensors().put('token_embd.weight', 288, width).put('output.weight', 288, width);
  tensors.put('output_norm.weight', width).put('output_norm.bias', width);
  for (let i = 0; i < layers; ++i) {
    tensors.put(`blk.${i}.attn_qkv.weight`, width + 64, width).put(`blk.${i}.attn_output.weight`, width, width);
    tensors.put(`blk.${i}.ffn_up.weight`, 4 * width, width).put(`blk.${i}.ffn_down.weight`, width, 4 * width);
    tensors.put(`blk.${i}.attn_norm.weight`, width).put(`blk.${i}.attn_norm.bias`, width);
  }
  writeGguf(path, ggufKeys('falcon', { layers, width, heads, kvHeads: 1, feedForward: 4 * width }), tensors);
}

function ggufKeys(architecture, m) {
  const key = (name) => `${architecture}.${name}`;
  return {
    'general.architecture': architecture,
    [key('context_length')]: 64,
    [key('embedding_length')]: m.width,
    [key('block_count')]: m.layers,
    [key('feed_forward_length')]: m.feedForward,
    [key('attention.head_count')]: m.heads,
    [key('attention.head_count_kv')]: m.kvHeads,
    [key('attention.layer_norm_rms_epsilon')]: 0.00001,
    [key('attention.layer_norm_epsilon')]: 0.00001,
    [key('vocab_size')]: 288,
    'tokenizer.ggml.model': 'no_vocab',
  };
}

/** An importance matrix with one entry, as llama-imatrix writes it: enough for rules that only ask whether there is one. */
export function writeImportance(path, name, columns) {
  const tensors = new Map();
  tensors.set(`${name}.in_sum2`, { shape: [1, columns], data: new Float32Array(columns).fill(1) });
  tensors.set(`${name}.counts`, { shape: [1, 1], data: new Float32Array([1]) });
  const keys = { 'general.type': 'imatrix', 'imatrix.datasets': ['none'] };
  writeGguf(path, { ...keys, 'imatrix.chunk_count': 1, 'imatrix.chunk_size': 512 }, tensors);
}
