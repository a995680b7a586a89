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

/** Values that share a scale, of a weight with rows of `columns`. */
const lengthOfScale = ({ qscheme, group_size }, columns, count) =>
  ({ per_tensor: count, per_channel: columns, per_group: Math.min(group_size, columns) })[qscheme];

/** Whether the largest magnitude has both signs wherever values of one scale differ. */
function areTies(ours, theirs, weight, length) {
  for (let begin = 0; begin < weight.length; begin += length) {
    const part = (values) => values.subarray(begin, begin + length);
    const theirPart = part(theirs);
    if (part(ours).every((value, i) => value === theirPart[i])) continue;
    const { low, high } = part(weight).reduce(
      (range, value) => ({ low: Math.min(range.low, value), high: Math.max(range.high, value) }),
      { low: 0, high: 0 },
    );
    if (low !== -high) return false;
  }
  return true;
}

function compareCase(row, name, { given, spec, ours, theirs, weight, columns }) {
  const found = {
    ...differenceOf(ours, theirs),
    areTies: areTies(ours, theirs, weight, lengthOfScale(spec, columns, weight.length)),
  };
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
    else {
      const { data, shape } = tensors.get(weight);
      const columns = data.length / shape[0];
      compareCase(row, name, { given, spec, ours, theirs: tensors.get(values).data, weight: data, columns });
    }
  }
  return row;
}
