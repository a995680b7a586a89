// What is compared with AMD Quark.
import { checkAlgorithms } from './algorithms_check.mjs';
import { checkBiases } from './biases_check.mjs';
import { checkConfigs } from './config_check.mjs';
import { checkExports } from './exports_check.mjs';
import { checkNumbers } from './numbers_check.mjs';

/** Rows of the table of `npm run test:peers`. */
export async function checkQuark(environment, quantizer, folder, options) {
  const numbers = await checkNumbers(environment, quantizer, folder, options);
  const configs = await checkConfigs(environment, quantizer, folder, options);
  const exports = await checkExports(environment, quantizer, folder);
  const biases = await checkBiases(environment, quantizer, folder);
  return [...configs, ...numbers, ...biases, ...exports, ...(await checkAlgorithms(environment, quantizer, folder))];
}
