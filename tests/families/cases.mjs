// What is quantized: every family with every preset, and some families with rules.

export const presets = ['int8', 'int4_wo_32', 'fp8_per_channel', 'mxfp4'];

/** Classes of transformers that do not compute in bfloat16 whatever their weights are; mxfp4 loads as bfloat16. */
export const notInBfloat16 = ['ctrl', 'deberta', 'fnet', 'nystromformer', 'xlnet', 'canine', 'deepseek_v4'];

/** The same for float16. */
export const notInFloat16 = ['deberta', 'deepseek_v4', 'xlnet'];

/** Of the presets `chosen`, those that the class of a family computes with. */
export const presetsOf = (family, chosen) =>
  chosen.filter((preset) => preset !== 'mxfp4' || !notInBfloat16.includes(family));

const firstLayer = ['-x', '*.layers.0.*'];
const down = ['--layer', '*.down_proj=int8'];
const attention = ['--layer', '*attn*=fp8_per_channel'];

/** Rules as people write them, on families whose tensors and modules are called alike and on those where they are not. */
export const rules = [
  ...['llama-tied', 'qwen3_moe', 'gemma3_text', 'qwen2_vl', 'mixtral', 'llama-tied-sharded'].map((family) => ({
    family,
    preset: 'int4_wo_32',
    args: firstLayer,
  })),
  ...['llama-tied', 'qwen2_vl', 'qwen2_5_vl', 'qwen3_vl', 'gemma3', 'llava', 'mistral3', 'qwen3_5', 'glm4_moe'].map(
    (family) => ({
      family,
      preset: 'int4_wo_32',
      args: down,
    }),
  ),
  ...['qwen2_vl', 'qwen2_5_vl', 'qwen2_vl-bf16', 'qwen2_vl-modules'].map((family) => ({
    family,
    preset: 'int8',
    args: ['-x', 'visual.*', '-x', '*.visual.*'],
  })),
  { family: 'qwen2_vl', preset: 'int8', args: ['-x', 'visual.*'] },
  { family: 'qwen2_5_vl', preset: 'int4_wo_32', args: ['-x', 'visual.*'] },
  { family: 'gemma3', preset: 'int8', args: ['-x', '*vision_tower*'] },
  { family: 'llava', preset: 'int4_wo_32', args: ['-x', '*vision_tower*', '-x', '*projector*'] },
  { family: 'bert', preset: 'int8', args: ['-x', '*.layer.0.*'] },
  { family: 'bert', preset: 'int4_wo_32', args: ['--layer', '*.attention.*=int8'] },
  { family: 'vit', preset: 'int8', args: ['-x', '*.layer.0.*'] },
  { family: 'vit', preset: 'int4_wo_32', args: ['--layer', '*.attention.*=int8'] },
  { family: 'swin', preset: 'int4_wo_32', args: ['--layer', '*.attention.*=int8'] },
  { family: 'whisper', preset: 'int8', args: ['-x', 'model.encoder.*'] },
  { family: 't5', preset: 'int8', args: ['-x', 'decoder.*'] },
  { family: 'gpt_neox', preset: 'int4_wo_32', args: ['--layer', '*attention*=int8'] },
  { family: 'bloom-base', preset: 'int8', args: ['-x', 'h.0.*'] },
  { family: 'bloom-base', preset: 'int4_wo_32', args: ['--layer', '*mlp*=int8'] },
  ...['llama', 'qwen3_next', 'phimoe'].map((family) => ({ family, preset: 'int8', args: attention })),
];

/** A refusal is allowed where it says what transformers cannot load, and of models of convolutions alone. */
export const isLoadersLimit = (text) => /transformers|convolutions: no runtime reads/.test(text);

/** Of the cells of a run of all families, or of a third of them, this share is right. */
export const leastShare = 0.93;
