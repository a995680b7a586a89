// The families whose ONNX graphs are compared, as tests/families/make_families.py calls their tiny checkpoints, and how configs differ: the cases
// of the forward pass, of which graphs are built, and encoders.
import { decodersOfEmbeddings, families as forward, encoders as forwardEncoders } from '../forward_families/cases.mjs';

/** Families with a forward pass of which no graph is built. */
export const refused = [
  'apertus',
  'apertus-bf16',
  'mixtral',
  'granitemoe',
  'granitemoeshared',
  'qwen2_moe',
  'qwen3_moe',
  'olmoe',
  'dots1',
  'glm4_moe',
  'solar_open',
  'minimax_m2',
  'ernie4_5_moe',
  'gpt_oss',
  'gpt_oss-bf16',
  'gpt_oss-mxfp4',
  'gpt_oss-odd',
  'gpt_oss-odd-mxfp4',
  'deepseek_v2',
  'deepseek_v2-plain',
  'deepseek_v3',
  'deepseek_v3-plain',
  'llama4_text',
  'gemma3n_text',
  'gemma3n-shared',
  'gemma4_text',
  'gemma4_moe',
  'gemma4-experts',
  'gemma4-shared',
  'gemma4-keys',
  'gemma4',
  'llama4',
  'glm4_moe_lite',
  'youtu',
  'exaone_moe',
  'hunyuan_v1_moe',
  'mellum',
  'hy_v3',
  'qwen3_next',
  'qwen3_5',
  'qwen3_5_text',
  'qwen3_5_moe',
  'qwen3_5_moe_text',
  'mamba',
  'falcon_mamba',
  'jamba',
  'mamba2',
  'bamba',
  'granitemoehybrid',
  'granitemoehybrid-dense',
  'lfm2',
  'lfm2-odd',
  'lfm2_moe',
];

/** More configs of decoders: windows shorter than the texts. */
const windows = {
  gemma2: [{ sliding_window: 20 }],
  gemma3_text: [{ sliding_window: 20 }],
  cohere2: [{ sliding_window: 20 }],
  olmo3: [{ sliding_window: 20 }],
};

const decoders = Object.keys(forward).filter((name) => !refused.includes(name));

/** Of which hidden states are compared. */
export const encoders = Object.fromEntries(
  Object.entries(forwardEncoders).filter(([name]) => !decodersOfEmbeddings.includes(name)),
);

/** Values as in tests/forward_families. */
export const families = {
  ...Object.fromEntries(decoders.map((name) => [name, [...forward[name], ...(windows[name] ?? [])]])),
  ...encoders,
};

/** LongRoPE has other frequencies for texts longer than its original positions: a cache that grows beyond them has keys by both. */
export const hasOneCache = ({ rope_parameters }) => rope_parameters?.rope_type !== 'longrope';
