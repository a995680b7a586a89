// Calibrated algorithms of Quark and ours on tiny-llama, with Quark's own config of each, the same weights' spec and calibration tokens. Both results
// are models of float weights, which one evaluator measures on held-out tokens: ours may not be worse by more than a thousandth of a bit.
import { join } from 'node:path';
import { root } from '../../setup/command.mjs';
import { writeSlice } from './calibration_tokens.mjs';
import { Row } from './rows.mjs';

const tinyLlama = join(root, 'tests/files/tiny-llama');
const bound = 0.001;

/** Bits per token of our models: folder to number. */
async function evaluate(environment, folder, targets) {
  const bits = new Map();
  for await (const line of environment.lines('evaluation.py', folder, ...targets)) bits.set(line.model, line.bits);
  return bits;
}

/** Rows of the table. */
export async function checkAlgorithms(environment, quantizer, folder) {
  const row = new Row(
    'algorithms: the bits that a token of text takes after each, no worse than after Quark’s by 0.001',
  );
  const tokens = writeSlice('calib', [4, 128], join(folder, 'calibration.safetensors'));
  writeSlice('validation', [64, 256], join(folder, 'evaluation.safetensors'));
  const model = await quantizer.open(tinyLlama);
  const runs = [];
  for await (const line of environment.lines('algorithms.py', folder, tinyLlama)) {
    if (line.error) {
      row.fail(line.name, `Quark: ${line.error}`);
      continue;
    }
    const target = join(folder, line.name);
    await quantizer.quantizeModel(model, line.config, { target, format: 'fake-quantized', calibration: { tokens } });
    runs.push({ ...line, target });
  }
  model.close();
  const targets = runs.map(({ target }) => target);
  const ours = await evaluate(environment, folder, targets);
  const texts = runs.map(({ name, bits, target }) => `${name} ${bits.toFixed(4)} ${ours.get(target).toFixed(4)}`);
  row.note = `bits per token, Quark and ours: ${texts.join(', ')}`;
  for (const { name, bits, target } of runs) {
    if (ours.get(target) <= bits + bound) row.passed++;
    else row.fail(name, `${ours.get(target)} bits per token, Quark ${bits}`);
  }
  return [row];
}
