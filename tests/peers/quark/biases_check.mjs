// Biases quantized by Quark and by us in a model of values, with the config that Quark writes: the same bits.
import { join } from 'node:path';
import { differenceOf, readTensors } from '../tensor_files.mjs';
import { Row } from './rows.mjs';

/** Rows of the table. */
export async function checkBiases(environment, quantizer, folder) {
  const row = new Row('biases: those of a model, quantized and dequantized by their own spec, have the same values');
  const model = join(folder, 'opt');
  for await (const { name, config, values, error } of environment.lines('biases.py', folder)) {
    if (error) {
      row.fail(name, `Quark: ${error}`);
      continue;
    }
    const target = `${values}.ours`;
    const source = await quantizer.open(model);
    try {
      await quantizer.quantizeModel(source, config, { target, format: 'fake-quantized' });
    } finally {
      source.close();
    }
    const [ours, theirs] = [readTensors(join(target, 'model.safetensors')), readTensors(values)];
    const floats = readTensors(join(model, 'model.safetensors'));
    const differing = [...theirs].filter(([bias, { data }]) => differenceOf(ours.get(bias).data, data).count > 0);
    const untouched = [...theirs].filter(([bias, { data }]) => differenceOf(floats.get(bias).data, data).count === 0);
    if (theirs.size === 0 || untouched.length === theirs.size) row.fail(name, 'Quark quantizes no bias');
    else if (differing.length > 0)
      row.fail(name, `${differing.length} of ${theirs.size} differ, first ${differing[0][0]}`);
    else row.passed++;
  }
  return [row];
}
