// A tiny Mixtral whose router never chooses its last expert: rows r, -r, s, -s and 0 of the router, of which the two largest are never 0.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noise, safetensors } from './written_model.mjs';

export const sizes = { vocabulary: 96, hidden: 64, inner: 96, layers: 2, experts: 5, chosen: 2 };
export const unseen = sizes.experts - 1;

/** Sequences of 64 tokens that follow each other in some ways more often than in others. */
export function mixtureTokens(sequences, seed = 1) {
  const values = noise(sequences * 64, seed);
  const data = new Int32Array(values.length);
  for (let i = 0; i < data.length; ++i)
    data[i] = (Math.floor((values[i] + 1) * 12) + 5 * (data[i - 1] ?? 0)) % sizes.vocabulary;
  return { data, shape: [sequences, 64] };
}

/** Writes the model into `folder`. */
export function writeTinyMixture(folder) {
  const { vocabulary, hidden, inner, layers, experts, chosen } = sizes;
  let seed = 1;
  const matrix = (rows, columns) => {
    const data = noise(rows * columns, ++seed).map((value) => (value ** 3 * 2) / Math.sqrt(columns));
    return { dtype: 'F32', shape: [rows, columns], data };
  };
  const norm = () => ({ dtype: 'F32', shape: [hidden], data: noise(hidden, ++seed).map((value) => 1.2 + value) });
  const tensors = {
    'model.embed_tokens.weight': matrix(vocabulary, hidden),
    'model.norm.weight': norm(),
    'lm_head.weight': matrix(vocabulary, hidden),
  };
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'o_proj'])
      tensors[`${at}.self_attn.${name}.weight`] = matrix(hidden, hidden);
    tensors[`${at}.input_layernorm.weight`] = norm();
    tensors[`${at}.post_attention_layernorm.weight`] = norm();
    const router = matrix(experts, hidden);
    for (let row = 0; row < experts; ++row)
      for (let i = 0; i < hidden; ++i) {
        if (row === unseen) router.data[row * hidden + i] = 0;
        else if (row % 2 === 1) router.data[row * hidden + i] = -router.data[(row - 1) * hidden + i];
      }
    tensors[`${at}.block_sparse_moe.gate.weight`] = router;
    for (let expert = 0; expert < experts; ++expert) {
      const name = `${at}.block_sparse_moe.experts.${expert}`;
      tensors[`${name}.w1.weight`] = matrix(inner, hidden);
      tensors[`${name}.w2.weight`] = matrix(hidden, inner);
      tensors[`${name}.w3.weight`] = matrix(inner, hidden);
    }
  }
  const config = {
    model_type: 'mixtral',
    architectures: ['MixtralForCausalLM'],
    vocab_size: vocabulary,
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: 4,
    num_key_value_heads: 4,
    num_local_experts: experts,
    num_experts_per_tok: chosen,
    max_position_embeddings: 128,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: 'silu',
    tie_word_embeddings: false,
    sliding_window: null,
    torch_dtype: 'float32',
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  return folder;
}
