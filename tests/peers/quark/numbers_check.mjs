// A matrix quantized and dequantized by random specs, by Quark and by us: the same bits, but for the sign of zeros.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { numberDifferences } from './number_differences.mjs';
import { Row } from './rows.mjs';

/** Reads F32 tensors of a safetensors file: name to {shape, data}. */
function readTensors(path) {
  const bytes = readFileSync(path);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, start));
  const tensors = new Map();
  for (const [name, { shape, data_offsets: offsets }] of Object.entries(header)) {
    if (!offsets) continue;
    const [begin, end] = offsets.map((offset) => bytes.byteOffset + start + offset);
    tensors.set(name, { shape, data: new Float32Array(bytes.buffer.slice(begin, end)) });
  }
  return tensors;
}

/** How many values differ, the largest relative difference, the first that does. */
function differenceOf(ours, theirs) {
  const found = { count: 0, largest: 0, first: -1 };
  for (let i = 0; i < theirs.length; ++i) {
    if (ours[i] === theirs[i]) continue;
    if (found.count++ === 0) found.first = i;
    found.largest = Math.max(found.largest, Math.abs(ours[i] - theirs[i]) / Math.max(Math.abs(theirs[i]), 1e-38));
  }
  return found;
}

/** Without the keys that have no value, and without round_method: Quark's CPU code always rounds half to even. */
const given = (spec) =>
  Object.fromEntries(Object.entries(spec).filter(([key, value]) => value !== null && key !== 'round_method'));

function fakeQuantized(quantizer, tensor, specs) {
  const stages = specs.map(given);
  try {
    return { values: quantizer.fakeQuantize(tensor, stages.length > 1 ? stages : stages[0]) };
  } catch (error) {
    const problems = (error.diagnostics ?? []).filter(({ severity }) => severity === 'error');
    return { problems: problems.length > 0 ? problems : [{ code: error.code, where: '', message: error.message }] };
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
