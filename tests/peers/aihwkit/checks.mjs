// What is compared with aihwkit: maps of its digital quantization.
import { checkWeights } from '../weights_check.mjs';
import * as listed from './differences.mjs';
import { checkInputs } from './input_checks.mjs';

/** Names do not say which norms are of class LayerNorm; a user would. */
function prepare(config, types) {
  const norms = Object.entries(types).filter(([, type]) => type === 'LayerNorm');
  return norms.length > 0 ? { ...config, layer_types: Object.fromEntries(norms) } : config;
}

/** Rows of the table of `npm run test:peers`. */
export async function checkAihwkit(environment, quantizer, folder, options) {
  const what = 'maps: each weight has the scales, zero points and values of aihwkit, or both refuse';
  return [
    await checkWeights({ what, environment, quantizer, folder, options, listed, prepare }),
    await checkInputs({ environment, quantizer, folder, options }),
  ];
}
