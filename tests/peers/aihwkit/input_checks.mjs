// Inputs that a map quantizes: their scales, calibrated by us with the batches that aihwkit saw.
import { join } from 'node:path';
import { memoryStream } from '../../node/scratch.mjs';
import { parsed } from '../../node/written_model.mjs';
import { CaseRow } from '../case_row.mjs';
import { errorsOf, readTensors } from '../tensor_files.mjs';

/** Brent's method ends where sums of float32 let it: another end is as good if the loss is, or if it is where aihwkit ends with columns in another order. */
const lossTolerance = 1.01;

/** Sum of squared errors of x and y. */
const squaredError = (x, y) => x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);

/** Sum of -softmax(x) * log_softmax(y) over the second axis. */
function crossEntropy(x, y, [, classes, ...rest]) {
  const inner = rest.reduce((product, length) => product * length, 1);
  let loss = 0;
  for (let start = 0; start < x.length; start += classes * inner)
    for (let k = 0; k < inner; ++k) {
      const at = Array.from({ length: classes }, (_, c) => start + c * inner + k);
      const logSum = (v) => {
        const most = Math.max(...at.map((i) => v[i]));
        return most + Math.log(at.reduce((sum, i) => sum + Math.exp(v[i] - most), 0));
      };
      const [ofX, ofY] = [logSum(x), logSum(y)];
      for (const i of at) loss -= Math.exp(x[i] - ofX) * (y[i] - ofY);
    }
  return loss;
}

/** The loss of a scale and zero point on the last batch, which a search sees; grids of several batches add them up. */
function lossOf(batches, estimator, { scale, zeroPoint, symmetric }) {
  const [lowest, highest] = symmetric ? [-128, 127] : [0, 255];
  return batches.reduce((sum, { data, shape }) => {
    const y = data.map((x) => {
      const code = Math.round(x / scale) + zeroPoint;
      return (Math.min(Math.max(code, lowest), highest) - zeroPoint) * scale;
    });
    return sum + (estimator === 'MSE' ? squaredError(data, y) : crossEntropy(data, y, shape));
  }, 0);
}

/** What differs of one layer: a text, or undefined. `moreEnds` asks aihwkit for ends in more orders: {scales, zero_points}. */
async function difference({ header, data }, expected, batches, layer, { config, estimator, symmetric }, row, moreEnds) {
  if (!header[`${layer}.input_scale`]) return `${layer}.input_scale is missing`;
  const [scale] = new Float32Array(data(`${layer}.input_scale`).buffer);
  const theirs = expected.get(`${layer} scale`).data[0];
  const zeroPoint = symmetric ? 0 : data(`${layer}.input_zero_point`)[0];
  const zero = symmetric ? 0 : expected.get(`${layer} zero_point`).data[0];
  if (scale === theirs && zeroPoint === zero) return undefined;
  if (!/MSE|cross_entropy/.test(estimator))
    return `${layer}: scale ${scale} and zero point ${zeroPoint}, aihwkit's ${theirs} and ${zero} (${estimator})`;
  const entry = config.input_activation_qconfig_map[layer].range_estimator_params;
  const seen = entry?.range_opt_method === 'grid' ? batches : batches.slice(-1);
  const lossAt = (scale, zeroPoint) => lossOf(seen, estimator, { scale, zeroPoint, symmetric });
  const [ours, best] = [lossAt(scale, zeroPoint), lossAt(theirs, zero)];
  const isAsGoodAs = (losses) => ours <= Math.max(...losses) * lossTolerance + 1e-12;
  const lossesOf = (scales, zeros) => [...scales].map((end, i) => lossAt(end, zeros[i]));
  const others = expected.get(`${layer} other scales`)?.data;
  let isEnd = isAsGoodAs([best, ...lossesOf(others ?? [], expected.get(`${layer} other zero_points`)?.data)]);
  if (!isEnd && others) {
    const { scales, zero_points } = await moreEnds(layer); // rare valleys take more orders than every case can have
    isEnd = isAsGoodAs(lossesOf(scales, zero_points));
  }
  if (!isEnd) return `${layer}: ${estimator} with a loss of ${ours}, aihwkit's ${best}; scale ${scale}, ${theirs}`;
  row.searches = (row.searches ?? 0) + 1;
  return undefined;
}

/** The batches of a layer's inputs, in order. */
const batchesOf = (tensors, layer) =>
  [...tensors].filter(([name]) => name.startsWith(`${layer}.input.`)).map(([, tensor]) => tensor);

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
    const inputs = readTensors(calibration);
    const moreEnds = async (layer) => {
      for await (const ends of environment.lines('input_cases.py', folder, seed, count, line.case, layer)) return ends;
      throw new Error('input_cases.py printed no ends');
    };
    const failures = [];
    for (const layer of line.layers)
      failures.push(await difference(written, expected, batchesOf(inputs, layer), layer, line, row, moreEnds));
    row.add(name, failures.filter(Boolean));
  }
  row.note = `${compared} inputs compared, ${row.searches ?? 0} of them other ends of searches: with a loss within 1 % of aihwkit's, or of its own with the columns in another order`;
  return row;
}
