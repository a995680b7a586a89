// Folders of formats gptq and awq, loaded by AutoRound with its kernels in PyTorch.
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';

/** The kernels decode to the weights that the reference has, and multiply as it is made to (multiply_transposed). */
const isExact = true;
const tinyLlama = { model: 'tiny-llama', dtype: 'float16', isExact };

// On a CPU it has no kernel of its own for gptq and awq with zero points and leaves such layers with random weights; with gptqmodel installed it uses that.
const refusals = { uint4_wo_64: 'missing_keys' };
/** desc_act with g_idx. */
const actOrder = { title: 'act-order', config: { name: 'gptq', static_groups: false } };

const cases = [
  ...casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32', 'int4_wo_64', 'uint4_wo_64'], refusals }),
  ...casesOf({
    ...tinyLlama,
    format: 'gptq',
    presets: ['int4_wo_32'],
    algorithm: actOrder,
    refusals: { int4_wo_32: 'may contain a non-dummy g_idx, which is not yet supported by AutoRound' },
  }),
  ...['int2', 'int3', 'int8'].flatMap((dtype) =>
    casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32'], weight: { dtype } }),
  ),
  ...casesOf({ ...tinyLlama, format: 'awq', presets: ['uint4_wo_64'], refusals }),
  ...casesOf({ ...tinyLlama, format: 'gptq', isWrong: true, presets: ['int4_wo_32', 'int4_wo_64'] }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkAutoRound(environment, quantizer, folder, { only }) {
  return checkRuntime(environment, quantizer, folder, { cases, only });
}
