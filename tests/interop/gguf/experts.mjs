// A mixture of experts as GGUF, stacked, and an importance matrix with values and counts of its own for each expert.
import { values, writeGguf } from './file.mjs';

export const sizes = { width: 256, inner: 256, words: 288, layers: 2, experts: 4 };
const { width, inner, words, layers, experts } = sizes;

/** Stacked and plain weights of a layer with importance, by the middle of their names. */
const weights = {
  attn_q: [width, width],
  attn_k: [width, width],
  attn_v: [width, width],
  attn_output: [width, width],
  ffn_gate_exps: [experts, inner, width],
  ffn_up_exps: [experts, inner, width],
  ffn_down_exps: [experts, width, inner],
};

const keys = {
  'general.architecture': 'llama',
  'llama.context_length': 64,
  'llama.embedding_length': width,
  'llama.block_count': layers,
  'llama.feed_forward_length': inner,
  'llama.attention.head_count': 4,
  'llama.attention.head_count_kv': 4,
  'llama.expert_count': experts,
  'llama.expert_used_count': 2,
  'llama.attention.layer_norm_rms_epsilon': 0.00001,
  'llama.rope.dimension_count': 64,
  'llama.vocab_size': words,
  'tokenizer.ggml.model': 'llama',
  'tokenizer.ggml.tokens': Array.from({ length: words }, (_, i) => `t${i}`),
};

const elements = (shape) => shape.reduce((product, size) => product * size, 1);
const layerNames = Array.from({ length: layers }, (_, layer) => `blk.${layer}`);

/** Tensors by name: `{ shape, data }`. */
export function expertTensors() {
  const shapes = { 'token_embd.weight': [words, width], 'output.weight': [words, width] };
  for (const layer of layerNames) {
    for (const [name, shape] of Object.entries(weights)) shapes[`${layer}.${name}.weight`] = shape;
    shapes[`${layer}.ffn_gate_inp.weight`] = [experts, width];
    for (const name of ['attn_norm', 'ffn_norm']) shapes[`${layer}.${name}.weight`] = [width];
  }
  shapes['output_norm.weight'] = [width];
  return new Map(
    Object.entries(shapes).map(([name, shape], i) => {
      const data = values(elements(shape), i + 1);
      return [name, { shape, data: shape.length === 1 ? data.fill(1) : data }];
    }),
  );
}

export const writeExperts = (path, tensors = expertTensors()) => writeGguf(path, keys, tensors);

/** Sums of squares and counts by tensor: `{ sums, counts }`, a row for each expert. `blk.1.ffn_up_exps`: the third expert saw nothing. */
export function expertImportance() {
  const found = new Map();
  for (const [at, layer] of layerNames.entries())
    for (const [number, [name, shape]] of Object.entries(weights).entries()) {
      const rows = shape.length === 3 ? experts : 1;
      const seed = 100 * (at + 1) + number;
      const counts = values(rows, seed).map((value) => 210 + Math.round(value * 1900));
      if (rows > 1 && at === 1 && name === 'ffn_up_exps') counts[2] = 0;
      const columns = shape.at(-1);
      const sums = values(rows * columns, seed + 50).map(
        (value, i) => Math.exp(value * 40) * counts[Math.floor(i / columns)],
      );
      found.set(`${layer}.${name}.weight`, { sums, counts, columns });
    }
  return found;
}

export function writeImportance(path, importance = expertImportance()) {
  const tensors = new Map();
  for (const [name, { sums, counts, columns }] of importance) {
    tensors.set(`${name}.in_sum2`, { shape: [counts.length, columns], data: sums });
    tensors.set(`${name}.counts`, { shape: [counts.length, 1], data: counts });
  }
  const about = { 'imatrix.datasets': ['x'], 'imatrix.chunk_count': 10, 'imatrix.chunk_size': 512 };
  writeGguf(path, { 'general.architecture': 'llama', 'general.type': 'imatrix', ...about }, tensors);
}
