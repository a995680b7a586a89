// Models that are in the checkout, and sequences of the texts that they were trained on and not.
import { tokensOf } from '../node/tiny_llama.mjs';

/** The model of the tests, whose weights were never rounded, and sequences of its own texts. */
const tinyLlama = {
  folder: 'tests/files/tiny-llama',
  calibration: () => tokensOf('calib', 32),
  report: () => tokensOf('validation', 64),
};
/** {folder, calibration and report: tokens} by model. */
export const own = { 'tiny-llama': tinyLlama };
