// Names and shapes of large mixtures of experts, as their checkpoints have them (bfloat16), and a model folder that holds them without data.
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const range = (count) => Array.from({ length: count }, (_, i) => i);
/** `{ name: shape }` of linear layers below a module. */
const below = (module, shapes) =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [`${module}.${name}`, shape]));

/** Grouped-query attention with rotary positions. */
const attention = (module, { hidden, heads, keyHeads, head, queries = 1 }) =>
  below(module, {
    'q_proj.weight': [heads * head * queries, hidden],
    'k_proj.weight': [keyHeads * head, hidden],
    'v_proj.weight': [keyHeads * head, hidden],
    'o_proj.weight': [hidden, heads * head],
  });

const norms = (module, hidden) =>
  below(module, { 'input_layernorm.weight': [hidden], 'post_attention_layernorm.weight': [hidden] });

const ends = (prefix, vocabulary, hidden) => ({
  'lm_head.weight': [vocabulary, hidden],
  [`${prefix}.embed_tokens.weight`]: [vocabulary, hidden],
  [`${prefix}.norm.weight`]: [hidden],
});

/** Qwen3.5-35B-A3B: fused experts, three gated delta nets to one attention with a gate, a vision tower. */
function qwen35() {
  const [hidden, experts, inner, prefix] = [2048, 256, 512, 'model.language_model'];
  const tensors = ends(prefix, 248320, hidden);
  for (const i of range(40)) {
    const layer = `${prefix}.layers.${i}`;
    const mixer =
      i % 4 === 3
        ? {
            ...attention(`${layer}.self_attn`, { hidden, heads: 16, keyHeads: 2, head: 256, queries: 2 }),
            ...below(`${layer}.self_attn`, { 'q_norm.weight': [256], 'k_norm.weight': [256] }),
          }
        : below(`${layer}.linear_attn`, {
            A_log: [32],
            dt_bias: [32],
            'conv1d.weight': [8192, 1, 4],
            'in_proj_qkv.weight': [8192, hidden],
            'in_proj_z.weight': [4096, hidden],
            'in_proj_a.weight': [32, hidden],
            'in_proj_b.weight': [32, hidden],
            'norm.weight': [128],
            'out_proj.weight': [hidden, 4096],
          });
    Object.assign(tensors, norms(layer, hidden), mixer, {
      [`${layer}.mlp.gate.weight`]: [experts, hidden],
      [`${layer}.mlp.experts.gate_up_proj`]: [experts, 2 * inner, hidden],
      [`${layer}.mlp.experts.down_proj`]: [experts, hidden, inner],
      [`${layer}.mlp.shared_expert_gate.weight`]: [1, hidden],
      [`${layer}.mlp.shared_expert.gate_proj.weight`]: [inner, hidden],
      [`${layer}.mlp.shared_expert.up_proj.weight`]: [inner, hidden],
      [`${layer}.mlp.shared_expert.down_proj.weight`]: [hidden, inner],
    });
  }
  const width = 1152;
  for (const i of range(27))
    Object.assign(
      tensors,
      below(`model.visual.blocks.${i}`, {
        'attn.qkv.weight': [3 * width, width],
        'attn.proj.weight': [width, width],
        'mlp.linear_fc1.weight': [4304, width],
        'mlp.linear_fc2.weight': [width, 4304],
        'norm1.weight': [width],
        'norm2.weight': [width],
      }),
    );
  Object.assign(tensors, {
    'model.visual.patch_embed.proj.weight': [width, 3, 2, 16, 16],
    'model.visual.pos_embed.weight': [2304, width],
    'model.visual.merger.linear_fc1.weight': [4 * width, 4 * width],
    'model.visual.merger.linear_fc2.weight': [hidden, 4 * width],
  });
  const text = {
    model_type: 'qwen3_5_moe_text',
    hidden_size: hidden,
    num_hidden_layers: 40,
    num_experts: experts,
    moe_intermediate_size: inner,
  };
  return {
    config: {
      architectures: ['Qwen3_5MoeForConditionalGeneration'],
      model_type: 'qwen3_5_moe',
      text_config: text,
      vision_config: { depth: 27, hidden_size: width },
    },
    tensors,
  };
}

/** gpt-oss-120b in bfloat16, as transformers writes it: transposed experts, gate and up interleaved. */
function gptOss() {
  const [hidden, experts, inner] = [2880, 128, 2880];
  const tensors = ends('model', 201088, hidden);
  for (const i of range(36)) {
    const layer = `model.layers.${i}`;
    Object.assign(
      tensors,
      norms(layer, hidden),
      attention(`${layer}.self_attn`, { hidden, heads: 64, keyHeads: 8, head: 64 }),
      {
        [`${layer}.self_attn.sinks`]: [64],
        [`${layer}.mlp.router.weight`]: [experts, hidden],
        [`${layer}.mlp.router.bias`]: [experts],
        [`${layer}.mlp.experts.gate_up_proj`]: [experts, hidden, 2 * inner],
        [`${layer}.mlp.experts.gate_up_proj_bias`]: [experts, 2 * inner],
        [`${layer}.mlp.experts.down_proj`]: [experts, inner, hidden],
        [`${layer}.mlp.experts.down_proj_bias`]: [experts, hidden],
      },
    );
  }
  return {
    config: {
      architectures: ['GptOssForCausalLM'],
      model_type: 'gpt_oss',
      hidden_size: hidden,
      intermediate_size: inner,
      num_hidden_layers: 36,
      num_local_experts: experts,
    },
    tensors,
  };
}

/** Mixtral 8x7B: single experts. */
function mixtral() {
  const [hidden, experts, inner] = [4096, 8, 14336];
  const tensors = ends('model', 32000, hidden);
  for (const i of range(32)) {
    const layer = `model.layers.${i}`;
    Object.assign(
      tensors,
      norms(layer, hidden),
      attention(`${layer}.self_attn`, { hidden, heads: 32, keyHeads: 8, head: 128 }),
    );
    tensors[`${layer}.block_sparse_moe.gate.weight`] = [experts, hidden];
    for (const e of range(experts))
      Object.assign(
        tensors,
        below(`${layer}.block_sparse_moe.experts.${e}`, {
          'w1.weight': [inner, hidden],
          'w2.weight': [hidden, inner],
          'w3.weight': [inner, hidden],
        }),
      );
  }
  return {
    config: {
      architectures: ['MixtralForCausalLM'],
      model_type: 'mixtral',
      hidden_size: hidden,
      intermediate_size: inner,
      num_hidden_layers: 32,
      num_local_experts: experts,
      router_jitter_noise: 0,
    },
    tensors,
  };
}

export const largeModels = { 'Qwen3.5-35B-A3B': qwen35, 'gpt-oss-120b': gptOss, 'Mixtral-8x7B': mixtral };

const bytesPerWeight = 2;
export const parametersOf = (shape) => shape.reduce((product, size) => product * size, 1);

/** Writes config.json and model.safetensors, whose data is a hole. */
export function writeWithoutData(folder, { config, tensors }) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, dtype: 'bfloat16' }));
  let end = 0;
  const header = { __metadata__: { format: 'pt' } };
  for (const [name, shape] of Object.entries(tensors)) {
    const start = end;
    end += parametersOf(shape) * bytesPerWeight;
    header[name] = { dtype: 'BF16', shape, data_offsets: [start, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const file = openSync(join(folder, 'model.safetensors'), 'w');
  writeSync(file, Buffer.concat([length, text]));
  ftruncateSync(file, 8 + text.length + end);
  closeSync(file);
}
