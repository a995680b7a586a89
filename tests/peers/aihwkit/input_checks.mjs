// Inputs that a map quantizes: their scales, calibrated by us with the batches that aihwkit saw.
import { join } from 'node:path';
import { memoryStream } from '../../node/scratch.mjs';
import { parsed } from '../../node/written_model.mjs';
import { CaseRow } from '../case_row.mjs';
import { errorsOf, readTensors } from '../tensor_files.mjs';

/** Brent's method ends where sums of float32 let it. */
const searchTolerance = 0.02;

/** What differs of one layer: a text, or undefined. */
function difference({ header, data }, expected, layer, { estimator, symmetric }, row) {
  if (!header[`${layer}.input_scale`]) return `${layer}.input_scale is missing`;
  const [scale] = new Float32Array(data(`${layer}.input_scale`).buffer);
  const theirs = expected.get(`${layer} scale`).data[0];
  const isSearch = /MSE|cross_entropy/.test(estimator);
  if (scale !== theirs) {
    if (!isSearch || Math.abs(scale - theirs) > searchTolerance * theirs)
      return `${layer}: scale ${scale}, aihwkit's ${theirs} (${estimator})`;
    row.searches = (row.searches ?? 0) + 1;
    return undefined;
  }
  if (symmetric) return undefined;
  const [zeroPoint] = data(`${layer}.input_zero_point`);
  const zero = expected.get(`${layer} zero_point`).data[0];
  return zeroPoint === zero ? undefined : `${layer}: zero point ${zeroPoint}, aihwkit's ${zero}`;
}

/** The row of the table. */
export async function checkInputs({ environment, quantizer, folder, options: { seed, count } }) {
  const row = new CaseRow('input_activation_qconfig_map: scales and zero points of inputs are those of aihwkit');
  let opened;
  let compared = 0;
  for await (const line of environment.lines('input_cases.py', folder, seed, count)) {
    opened ??= await quantizer.open(join(folder, 'inputs', 'model.safetensors'));
    const name = `${line.name} ${JSON.stringify(line.config)}`;
    const { stream, bytes } = memoryStream();
    const calibration = join(folder, `${line.name}.safetensors`);
    const expected = line.error ? undefined : readTensors(join(folder, `${line.name}-expected.safetensors`));
    try {
      await quantizer.quantizeModel(opened, line.config, { target: stream, format: 'quark', calibration });
    } catch (error) {
      const [problem] = errorsOf(error);
      if (line.error) row.add(name, []);
      // A quantizer of data that are never negative is unsigned in aihwkit; files say the dtype before data are seen.
      else if (/no value is below zero/.test(problem.message)) row.refused++;
      else row.add(name, [`refused: ${problem.where} ${problem.message}`]);
      continue;
    }
    if (line.error) {
      row.add(name, [`taken; aihwkit: ${line.error}`]);
      continue;
    }
    const written = parsed(bytes());
    compared += line.layers.length;
    row.add(name, line.layers.map((layer) => difference(written, expected, layer, line, row)).filter(Boolean));
  }
  row.note = `${compared} inputs compared, ${row.searches ?? 0} of them ends of searches within 2 %`;
  return row;
}
