// Weights quantized and dequantized by the quantizers of Brevitas' program for language models, and by specs that say the same: the same bits, but for
// the sign of zeros.
import { join } from 'node:path';
import { CaseRow } from '../case_row.mjs';
import { differenceOf, errorsOf, readTensors } from '../tensor_files.mjs';
import { numberDifferences, numberRefusals } from './number_differences.mjs';
import { specOf, withoutCounterpart } from './quantizer_specs.mjs';

function fakeQuantized(quantizer, tensor, spec) {
  try {
    return { values: quantizer.fakeQuantize(tensor, spec) };
  } catch (error) {
    return { problems: errorsOf(error) };
  }
}

const squaredError = (x, y) => x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);

function compareCase(row, name, { given, spec, ours, theirs, weight }) {
  const found = differenceOf(ours, theirs);
  const errors = { ours: squaredError(weight, ours), theirs: squaredError(weight, theirs) };
  if (found.count === 0) return row.add(name, []);
  if (row.explained.by(numberDifferences, { given, spec, errors, ...found })) return row.add(name, [], true);
  return row.add(name, [
    `${found.count} values differ, by up to ${found.largest}; [${found.first}]: Brevitas ${theirs[found.first]}, ours ${ours[found.first]}; ` +
      `squared errors ${errors.theirs}, ours ${errors.ours}; ${JSON.stringify(spec)}`,
  ]);
}

/** The row of the table. */
export async function checkNumbers(environment, quantizer, folder, { seed, count }) {
  const row = new CaseRow('numbers: a weight, quantized by each quantizer of its program, has the values of our spec');
  const cases = [];
  for await (const line of environment.lines('quantizer_numbers.py', folder, seed, count)) cases.push(line);
  const tensors = readTensors(join(folder, 'numbers.safetensors'));
  for (const { arguments: given, weight, values, error } of cases) {
    const name = `${seed} ${values} ${weight} ${JSON.stringify(given)}`;
    if (withoutCounterpart.some(({ explains }) => explains(given))) {
      row.refuse(name, withoutCounterpart, given);
      continue;
    }
    const spec = specOf(given);
    const { values: ours, problems } = fakeQuantized(quantizer, tensors.get(weight), spec);
    if (problems && error) row.add(name, []);
    else if (problems)
      row.refuse(
        name,
        numberRefusals,
        { given, ...problems[0] },
        `refused: ${problems[0].where} ${problems[0].message}`,
      );
    else if (error) row.refuse(name, numberRefusals, { given, error }, `Brevitas: ${error}`);
    else
      compareCase(row, name, { given, spec, ours, theirs: tensors.get(values).data, weight: tensors.get(weight).data });
  }
  return row;
}
