// Folders of several formats, loaded by vLLM's CPU build.
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';

const inBfloat16 = { model: 'tiny-llama', dtype: 'bfloat16' };
const inFloat32 = { model: 'tiny-llama', dtype: 'float32' };
const tinyLlama = { model: 'tiny-llama', dtype: 'float16' };
const tinyMoe = { model: 'tiny-moe', dtype: 'bfloat16' };
const smollm2 = { model: 'smollm2', dtype: 'float16' };

const compressed = { format: 'compressed-tensors' };
const wordPresets = ['int4_wo_64', 'uint4_wo_64'];
const compressedPresets = ['int8', 'int8_dynamic', 'fp8_per_channel', 'ptpc_fp8', 'fp8_per_block', 'mxfp4', 'nvfp4'];
const noKernel = 'Failed to find a kernel';
const compressedRefusals = {
  int8: noKernel,
  fp8_per_channel: noKernel,
  fp8_per_block: noKernel,
  mxfp4: noKernel,
};
const noFloatKernel = '"cpu_gemm_wna16" not implemented for \'Float\'';
const quarkPresets = ['int8', 'fp8', 'ptpc_fp8', 'mxfp4'];
const noScheme = 'No quark compatible scheme was found';
const quarkRefusals = { int8: noScheme, fp8: noScheme, mxfp4: noKernel };

const actOrderRefusals = { int4_wo_64: 'GPTQ group activation ordering (desc_act=True) is no longer supported' };
/** desc_act with g_idx. */
const actOrder = { title: 'act-order', config: { name: 'gptq', static_groups: false } };

// The CPU build has no kernels for quantized experts: the configs are read, and the backend is looked for in vain.
const noExperts = 'No WNA16 MoE backend supports the deployment configuration';
const expertPresets = ['int4_wo_64', 'int8', 'mxfp4', 'fp8_per_channel'];
const expertRefusals = { ...compressedRefusals, int4_wo_64: noExperts };
const included = { options: { experts: 'include' } };
const includedPresets = ['int8_dynamic', 'nvfp4', 'fp8_per_block'];
const includedRefusals = {
  int8_dynamic: 'No Int8 MoE backend supports the deployment configuration',
  nvfp4: 'No NvFp4 MoE backend supports the deployment configuration',
  fp8_per_block: noKernel,
};
const excluded = { options: { experts: 'exclude' } };
const quarkExpertRefusals = { ptpc_fp8: 'Unsupported FP8 MoE backend: NONE', mxfp4: noKernel };

const cases = [
  ...casesOf({ ...tinyLlama, ...compressed, presets: wordPresets }),
  ...casesOf({ ...inBfloat16, ...compressed, presets: compressedPresets, refusals: compressedRefusals }),
  ...casesOf({ ...tinyLlama, format: 'awq', presets: ['uint4_wo_64'] }),
  ...casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_64'] }),
  ...casesOf({
    ...tinyLlama,
    format: 'gptq',
    presets: ['int4_wo_64'],
    algorithm: actOrder,
    refusals: actOrderRefusals,
  }),
  ...casesOf({ ...inBfloat16, format: 'quark', presets: quarkPresets, refusals: quarkRefusals }),
  ...casesOf({ ...tinyMoe, ...compressed, presets: expertPresets, refusals: expertRefusals }),
  ...casesOf({ ...tinyMoe, ...compressed, ...included, presets: includedPresets, refusals: includedRefusals }),
  ...casesOf({ ...tinyMoe, ...compressed, ...excluded, presets: ['int4_wo_64'] }),
  ...casesOf({
    ...tinyMoe,
    format: 'awq',
    ...included,
    presets: ['uint4_wo_64'],
    refusals: { uint4_wo_64: noExperts },
  }),
  ...casesOf({ ...tinyMoe, format: 'awq', ...excluded, presets: ['uint4_wo_64'] }),
  ...casesOf({ ...tinyMoe, format: 'gptq', ...excluded, presets: ['int4_wo_64'] }),
  ...casesOf({ ...tinyMoe, format: 'gptq', ...included, presets: ['int4_wo_64'], refusals: expertRefusals }),
  ...casesOf({ ...tinyMoe, format: 'quark', presets: ['ptpc_fp8', 'mxfp4'], refusals: quarkExpertRefusals }),
  ...casesOf({ ...smollm2, ...compressed, presets: ['int4_wo_64'] }),
  ...casesOf({ ...inFloat32, ...compressed, presets: ['int8_dynamic', 'ptpc_fp8'] }),
  // Words have kernels of 16 bits only.
  ...casesOf({ ...inFloat32, ...compressed, presets: ['int4_wo_64'], refusals: { int4_wo_64: noFloatKernel } }),
  // One wrong scale of a row moves logits by 0.28 and 0.06 of the largest, less than the bounds of inputs that are rounded by other kernels: products
  // of single layers show it.
  ...casesOf({ ...tinyLlama, ...compressed, isWrong: true, presets: wordPresets }),
  ...casesOf({ ...inBfloat16, ...compressed, isWrong: true, presets: ['int8_dynamic', 'ptpc_fp8', 'nvfp4'] }),
  ...casesOf({ ...inFloat32, ...compressed, isWrong: true, presets: ['int8_dynamic', 'ptpc_fp8'] }),
  ...casesOf({ ...tinyLlama, format: 'awq', isWrong: true, presets: ['uint4_wo_64'] }),
  ...casesOf({ ...tinyLlama, format: 'gptq', isWrong: true, presets: ['int4_wo_64'] }),
  ...casesOf({ ...inBfloat16, format: 'quark', isWrong: true, presets: ['ptpc_fp8'] }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkVllm(environment, quantizer, folder, { only }) {
  return checkRuntime(environment, quantizer, folder, { cases, only });
}
