// What is compared with Brevitas: configs of Quark's Brevitas extension, which the extension itself applies, and quantizers.
import { checkWeights } from '../weights_check.mjs';
import * as listed from './differences.mjs';
import { checkNumbers } from './numbers_check.mjs';

/** Classes that names and shapes do not give away, as a user would add them. */
function prepare(config, types) {
  const named = Object.entries(types).filter(([, type]) => type.startsWith('ConvTranspose'));
  return named.length > 0 ? { ...config, layer_types: Object.fromEntries(named) } : config;
}

/** Rows of the table of `npm run test:peers`. */
export async function checkBrevitas(environment, quantizer, folder, options) {
  const what = 'configs: each weight has the codes, scales, zero points and values of Brevitas, or both refuse';
  const configs = await checkWeights({ what, environment, quantizer, folder, options, listed, prepare });
  return [configs, await checkNumbers(environment, quantizer, folder, options)];
}
