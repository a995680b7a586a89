// A matrix quantized and dequantized by random specs, by Quark and by us: the same bits, but for the sign of zeros.
import { join } from 'node:path';
import { differenceOf, errorsOf, readTensors } from '../tensor_files.mjs';
import { numberDifferences } from './number_differences.mjs';
import { Row } from './rows.mjs';

/** Without the keys that have no value, and without round_method: Quark's CPU code always rounds half to even. */
const given = (spec) =>
  Object.fromEntries(Object.entries(spec).filter(([key, value]) => value !== null && key !== 'round_method'));

function fakeQuantized(quantizer, tensor, specs) {
  const stages = specs.map(given);
  try {
    return { values: quantizer.fakeQuantize(tensor, stages.length > 1 ? stages : stages[0]) };
  } catch (error) {
    return { problems: errorsOf(error) };
  }
}

/** Rows of the table. */
export async function checkNumbers(environment, quantizer, folder, { seed, count }) {
  const row = new Row('numbers: a matrix, quantized and dequantized by random specs, has the same values');
  const cases = [];
  for await (const line of environment.lines('spec_numbers.py', folder, seed, count)) cases.push(line);
  const tensors = readTensors(join(folder, 'numbers.safetensors'));
  const matrix = tensors.get('matrix');
  for (const { specs, values } of cases) {
    const { values: ours, problems } = fakeQuantized(quantizer, matrix, specs);
    const name = `${seed} ${values} ${JSON.stringify(specs.map(given))}`;
    if (problems) {
      row.add(name, { problems });
      continue;
    }
    const theirs = tensors.get(values);
    const isOtherShape = theirs.shape.join() !== matrix.shape.join();
    const found = isOtherShape ? { count: 1 } : differenceOf(ours, theirs.data);
    if (found.count === 0) row.passed++;
    else if (row.explained.by(numberDifferences, { specs, isOtherShape, ...found })) row.differing++;
    else
      row.fail(
        name,
        `${found.count} values differ, by up to ${found.largest}; [${found.first}]: Quark ${theirs.data[found.first]}, ours ${ours[found.first]}`,
      );
  }
  return [row];
}
