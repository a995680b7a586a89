// Folders of formats gptq (version 1 without zero points, version 2 with them) and awq, loaded by gptqmodel with its kernels in PyTorch.
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';

const symmetric = ['int4_wo_32', 'int4_wo_64'];
const withZeroPoints = ['uint4_wo_32', 'uint4_wo_64'];
/** The kernels decode to the weights that the reference has, and multiply as it is made to (multiply_transposed). */
const isExact = true;
const tinyLlama = { model: 'tiny-llama', dtype: 'float16', isExact };

/** desc_act with g_idx. */
const actOrder = { title: 'act-order', config: { name: 'gptq', static_groups: false } };

const cases = [
  ...casesOf({ ...tinyLlama, format: 'gptq', presets: [...symmetric, ...withZeroPoints] }),
  ...casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32', 'uint4_wo_64'], algorithm: actOrder }),
  ...['int2', 'int3', 'int8'].flatMap((dtype) =>
    casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32'], weight: { dtype } }),
  ),
  ...['uint2', 'uint3', 'uint8'].flatMap((dtype) =>
    casesOf({ ...tinyLlama, format: 'gptq', presets: ['uint4_wo_32'], weight: { dtype } }),
  ),
  ...['int8', 'int3'].flatMap((dtype) =>
    casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32'], weight: { dtype }, algorithm: actOrder }),
  ),
  ...casesOf({ ...tinyLlama, format: 'awq', presets: withZeroPoints }),
  ...casesOf({ ...tinyLlama, format: 'gptq', isWrong: true, presets: ['int4_wo_32', 'uint4_wo_64'] }),
  ...casesOf({ ...tinyLlama, format: 'awq', isWrong: true, presets: ['uint4_wo_64'] }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkGptqmodel(environment, quantizer, folder, { only }) {
  return checkRuntime(environment, quantizer, folder, { cases, only });
}
