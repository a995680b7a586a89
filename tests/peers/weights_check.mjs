// Configs of a peer, applied by the peer and planned by us on the same model: refused by both, or every weight of the model has the same scales,
// zero points, codes and values. The script of the peer prints a line {model, types: {module: class}} for each model in FOLDER/<model>, then a line a config:
// {name, model, config} with `error`, why the peer refuses it, or `weights`, the tensors that it quantizes; FOLDER/<name>.safetensors has of each
// "<tensor> values" (dequantized), "<tensor> scale", and of integers perhaps "<tensor> zero_point" and "<tensor> codes".
import { join } from 'node:path';
import { CaseRow } from './case_row.mjs';
import { differenceOf, errorsOf, readTensors } from './tensor_files.mjs';

async function planOf(quantizer, model, config) {
  try {
    return { plan: await quantizer.plan(model, config, { format: 'fake-quantized' }) };
  } catch (error) {
    return { problems: errorsOf(error) };
  }
}

/** One value for all channels counts for each: zero points of symmetric weights. */
const forEach = (channels, values) =>
  values.length === 1 ? new Float32Array(channels.length).fill(values[0]) : values;

const sumOfSquares = (x, y) => x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);

/** What of a weight differs from the peer's tensors: {parts, errors}, or null. `spec` is the plan's. */
function differingParts(quantizer, weight, spec, theirs) {
  const values = quantizer.fakeQuantize(weight, spec);
  const quantized = quantizer.quantize(weight, spec);
  const parts = {
    values: differenceOf(values, theirs('values')),
    scale: differenceOf(quantized.scale, theirs('scale')),
  };
  const zeroPoint = theirs('zero_point');
  if (zeroPoint) parts.zero_point = differenceOf(quantized.zeroPoint, forEach(quantized.zeroPoint, zeroPoint));
  if (theirs('codes')) parts.codes = differenceOf(quantized.codes, theirs('codes'));
  if (Object.values(parts).every(({ count }) => count === 0)) return null;
  const errors = { ours: sumOfSquares(weight.data, values), theirs: sumOfSquares(weight.data, theirs('values')) };
  return { parts, errors };
}

function describe({ parts, errors, spec }) {
  const texts = Object.entries(parts)
    .filter(([, { count }]) => count > 0)
    .map(([part, { count, largest, first }]) => `${count} of ${part} from [${first}] by up to ${largest}`);
  return `${texts.join(', ')}; squared errors ${errors.ours}, the peer's ${errors.theirs}; ${JSON.stringify(spec)}`;
}

/** What differs in one config and is not listed, a text a weight. */
function unexplained(quantizer, plan, { weights, types }, { name, weights: quantized, config }, folder, row, listed) {
  const tensors = quantized.length > 0 ? readTensors(join(folder, `${name}.safetensors`)) : new Map();
  const left = new Set(quantized);
  const failures = [];
  for (const tensor of plan.tensors) {
    const spec = tensor.stages ?? tensor.spec;
    const isQuantizedThere = left.delete(tensor.name);
    const difference = { tensor, spec, config, type: types[tensor.layer], isQuantizedThere };
    if (isQuantizedThere !== !!spec) {
      if (!row.explained.by(listed.layers, difference))
        failures.push(
          `${tensor.name} ${spec ? 'is quantized here alone' : 'stays float here alone'}: ${tensor.reason.text}`,
        );
      continue;
    }
    if (!spec) continue;
    const weight = weights.get(tensor.name);
    const found = differingParts(quantizer, weight, spec, (part) => tensors.get(`${tensor.name} ${part}`)?.data);
    if (!found || row.explained.by(listed.weights, { ...difference, ...found })) continue;
    failures.push(`${tensor.name}: ${describe({ ...found, spec })}`);
  }
  return failures.concat([...left].map((weight) => `${weight} is not in the plan`));
}

/**
 * The row of the table. `listed` has tables of differences that are meant, {id, text, explains}: `layers` of tensors that only one of the two quantizes,
 * `weights` of those that both do, `acceptances` of configs that only ours takes, `refusals` of those that only the peer takes.
 * `prepare` gives the config that ours reads, from the peer's and the classes of the model's modules.
 */
export async function checkWeights({
  what,
  environment,
  quantizer,
  folder,
  options: { seed, count },
  listed,
  prepare,
}) {
  const models = new Map();
  const row = new CaseRow(what);
  let compared = 0;
  for await (const line of environment.lines('config_cases.py', folder, seed, count)) {
    if (!line.name) {
      const model = await quantizer.open(join(folder, line.model));
      models.set(line.model, { ...line, model, weights: readTensors(join(folder, line.model, 'model.safetensors')) });
      continue;
    }
    const entry = models.get(line.model);
    const { plan, problems } = await planOf(quantizer, entry.model, prepare(line.config, entry.types));
    const name = `${line.name} ${line.model} ${JSON.stringify(line.config)}`;
    if (problems && line.error) row.add(name, []);
    else if (problems)
      row.refuse(name, listed.refusals, problems[0], `refused: ${problems[0].where} ${problems[0].message}`);
    else if (line.error) row.refuse(name, listed.acceptances, line, `taken; the peer: ${line.error}`);
    else {
      compared += line.weights.length;
      const before = row.explained.total;
      const failures = unexplained(quantizer, plan, entry, line, folder, row, listed);
      row.add(name, failures, row.explained.total > before);
    }
  }
  row.note = `${compared} weights compared`;
  return row;
}
