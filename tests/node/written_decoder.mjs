// A tiny Llama, or a Mixtral whose experts have random weights, written as a checkpoint.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noise, safetensors } from './written_model.mjs';

/** Tensors by name; `sizes`: vocabulary, hidden, inner, layers and experts: 0 for a Llama. */
export function decoderTensors({ vocabulary, hidden, inner, layers, experts }) {
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
  const addFeedForward = (name, [gate, down, up]) => {
    tensors[`${name}.${gate}.weight`] = matrix(inner, hidden);
    tensors[`${name}.${down}.weight`] = matrix(hidden, inner);
    tensors[`${name}.${up}.weight`] = matrix(inner, hidden);
  };
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'o_proj'])
      tensors[`${at}.self_attn.${name}.weight`] = matrix(hidden, hidden);
    tensors[`${at}.input_layernorm.weight`] = norm();
    tensors[`${at}.post_attention_layernorm.weight`] = norm();
    const moe = `${at}.block_sparse_moe`;
    if (experts > 0) tensors[`${moe}.gate.weight`] = matrix(experts, hidden);
    for (let expert = 0; expert < experts; ++expert) addFeedForward(`${moe}.experts.${expert}`, ['w1', 'w2', 'w3']);
    if (experts === 0) addFeedForward(`${at}.mlp`, ['gate_proj', 'down_proj', 'up_proj']);
  }
  return tensors;
}

/** Writes `tensors` and their config.json into `folder`. `sizes`: those of decoderTensors(), with heads, positions and chosen: experts of a token. */
export function writeDecoder(
  folder,
  tensors,
  { vocabulary, hidden, inner, layers, heads, positions, experts, chosen },
) {
  const config = {
    model_type: experts > 0 ? 'mixtral' : 'llama',
    architectures: [experts > 0 ? 'MixtralForCausalLM' : 'LlamaForCausalLM'],
    vocab_size: vocabulary,
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    max_position_embeddings: positions,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: 'silu',
    tie_word_embeddings: false,
    torch_dtype: 'float32',
    ...(experts > 0 && { num_local_experts: experts, num_experts_per_tok: chosen, sliding_window: null }),
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  return folder;
}
