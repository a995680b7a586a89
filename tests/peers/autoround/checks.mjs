// Folders of formats gptq and awq, loaded by AutoRound with its kernels in PyTorch.
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';

const tinyLlama = { model: 'tiny-llama', dtype: 'float16' };

const cases = [
  ...casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32', 'int4_wo_64', 'uint4_wo_64'] }),
  ...['int2', 'int3', 'int8'].flatMap((dtype) =>
    casesOf({ ...tinyLlama, format: 'gptq', presets: ['int4_wo_32'], weight: { dtype } }),
  ),
  ...casesOf({ ...tinyLlama, format: 'awq', presets: ['uint4_wo_64'] }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkAutoRound(environment, quantizer, folder, { only }) {
  return [await checkRuntime(environment, quantizer, folder, { cases, only })];
}
