// Models that have sequences of the texts that they were trained on and not, and what makes those that are not in the checkout.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../interop/safetensors_file.mjs';
import { tokensOf } from '../node/tiny_llama.mjs';
import { root } from '../setup/command.mjs';

/** The model of the tests, whose weights were never rounded, and sequences of its own texts. */
const tinyLlama = {
  folder: 'tests/files/tiny-llama',
  calibration: () => tokensOf('calib', 32),
  report: () => tokensOf('validation', 64),
};

const trainedTokens = (name) => {
  const { data, shape } = readTensors(join(root, kjv.folder, `${name}_tokens.safetensors`)).get('input_ids');
  return { data, shape };
};
/** A larger one, which train.mjs makes. */
const kjv = {
  folder: '.peers-python/models/kjv-22m',
  maker: 'node tests/accuracy/train.mjs',
  training: () => {
    const { tokens, bitsPerByte } = JSON.parse(readFileSync(join(root, kjv.folder, 'training.json'), 'utf8'));
    return `trained on ${tokens.toLocaleString('en')} tokens to ${bitsPerByte.toFixed(3)} bits per byte of its held-out text`;
  },
  calibration: () => trainedTokens('calibration'),
  report: () => trainedTokens('validation'),
};

/** {folder, calibration and report: tokens, training: what is said of it} by model. */
export const own = { 'tiny-llama': tinyLlama, 'kjv-22m': kjv };

/** The command that makes a model. */
export const makerOf = (model) => own[model]?.maker ?? 'npm run test:peers -- transformers';
