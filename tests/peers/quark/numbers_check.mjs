// A matrix quantized and dequantized by random specs, by Quark and by us: the same bits, but for the sign of zeros.
import { join } from 'node:path';
import { differenceOf, errorsOf, readTensors } from '../tensor_files.mjs';
import { numberDifferences } from './differences/number_differences.mjs';
import { Row } from './rows.mjs';

/** Without the keys that have no value, and without round_method: Quark's CPU code always rounds half to even. */
const given = (spec) =>
  Object.fromEntries(Object.entries(spec).filter(([key, value]) => value !== null && key !== 'round_method'));

/** Numbers rounded to a dtype, as a matrix of Quark's is before and after. */
function rounded(numbers, dtype) {
  if (dtype === 'float16') return Float32Array.from(numbers, Math.f16round ?? halfOf);
  if (dtype !== 'bfloat16') return numbers;
  const bits = new Uint32Array(Float32Array.from(numbers).buffer);
  return new Float32Array(bits.map((word) => (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000).buffer);
}

/** A number rounded to float16: 11 bits, and multiples of 2^-24 below 2^-14; for engines without Math.f16round. */
function halfOf(number) {
  if (!Number.isFinite(number) || number === 0) return number;
  const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(number))), -14) - 10);
  const quotient = Math.abs(number) / step;
  const whole = Math.floor(quotient);
  const isUp = quotient - whole > 0.5 || (quotient - whole === 0.5 && whole % 2 === 1);
  const value = (whole + (isUp ? 1 : 0)) * step;
  return Math.sign(number) * (value >= 65520 ? Number.POSITIVE_INFINITY : value);
}

function fakeQuantized(quantizer, { data, shape }, specs, dtype) {
  const tensor = { data: rounded(data, dtype), shape };
  const scaleQuant = ({ is_scale_quant }) => is_scale_quant === true;
  const stages = specs.map(given).map((spec) => (scaleQuant(spec) ? spec : { ...spec, grid: { arithmetic: dtype } }));
  try {
    return { values: rounded(quantizer.fakeQuantize(tensor, stages.length > 1 ? stages : stages[0]), dtype) };
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
  for (const { specs, dtype, values } of cases) {
    const { values: ours, problems } = fakeQuantized(quantizer, matrix, specs, dtype);
    const name = `${seed} ${values} ${dtype} ${JSON.stringify(specs.map(given))}`;
    if (problems) {
      row.add(name, { problems });
      continue;
    }
    const theirs = tensors.get(values);
    const isOtherShape = theirs.shape.join() !== matrix.shape.join();
    const found = isOtherShape ? { count: 1 } : differenceOf(ours, theirs.data);
    if (found.count === 0) row.passed++;
    else if (row.explained.by(numberDifferences, { specs, dtype, isOtherShape, ...found })) row.differing++;
    else
      row.fail(
        name,
        `${found.count} values differ, by up to ${found.largest}; [${found.first}]: Quark ${theirs.data[found.first]}, ours ${ours[found.first]}`,
      );
  }
  return [row];
}
