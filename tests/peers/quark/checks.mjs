// What is compared with AMD Quark.
import { checkConfigs } from './config_check.mjs';
import { checkNumbers } from './numbers_check.mjs';

/** Rows of the table of `npm run test:peers`. */
export async function checkQuark(environment, quantizer, folder, options) {
  const numbers = await checkNumbers(environment, quantizer, folder, options);
  return [...(await checkConfigs(environment, quantizer, folder, options)), ...numbers];
}
