// Runtimes load what we write: a case is a model, a preset, a format and the dtype in which the runtime computes. The logits are those of the
// same runtime with our dequantized weights (a fake-quantized folder) within the bounds of bounds.mjs, and so are five tokens; or the
// runtime refuses the file, or computes something else, with the text that the case lists. Cases with `isWrong` have a reference with one
// wrong scale, which the bound must show.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { say } from '../../setup/command.mjs';
import { CaseRow } from '../case_row.mjs';
import { runtimeModel } from '../models/models.mjs';
import { boundOf, productBoundOf } from './bounds.mjs';
import { withWrongScale } from './wrong_scale.mjs';

/** Scales of these formats are float16, whatever dtype the weights have. */
const formatsOfFloat16Scales = ['awq', 'gptq'];

/** Cases that differ in their presets. `refusals`: {preset: a part of what is wrong}; `how`: an option of its loader;
 * `algorithm`: {title, config}, an entry of algo_config, calibrated on the model's own tokens; `weight`: members of the preset's spec that differ: instead of the preset's;
 * `isPadded`: groups may end short (of ONNX models); `isExact`: the loader decodes to the reference's own numbers; `isWrong`: the reference has one wrong scale. */
export function casesOf({ presets, refusals = {}, ...rest }) {
  return presets.map((preset) => ({ ...rest, preset, refusal: refusals[preset] }));
}

const expertText = { include: ' with experts', exclude: ' without experts' };
const modelOf = ({ model, options = {} }) => model + (expertText[options.experts] ?? '');
const presetOf = ({ preset, weight }) => (weight ? `${preset} as ${Object.values(weight).join(' ')}` : preset);
const nameOf = ({ format, dtype, how, algorithm, isWrong, ...entry }) =>
  [format, presetOf(entry), modelOf(entry), dtype, algorithm?.title, how, isWrong && 'one wrong scale']
    .filter(Boolean)
    .join(' ');

/** What is wrong with an outcome; undefined when all is as it must be. */
function problemOf({ error, share, bound, product, productBound, tokens, referenceTokens, areTokensEqual }) {
  if (error) return error;
  if (product > productBound)
    return `a product of one layer differs by ${product} of itself; the bound is ${productBound}`;
  if (!(share <= bound)) return `logits differ by ${share} of the largest; the bound is ${bound}`;
  return areTokensEqual ? undefined : `tokens ${tokens}, with the dequantized weights ${referenceTokens}`;
}

/** The row of a runtime in the table of `npm run test:peers`; `cells` are the rows of the table of runtimes. */
class RuntimeRow {
  what = 'runtime: our folders load; logits and five tokens are those of our dequantized weights';
  passed = 0;
  refused = 0;
  differing = 0;
  failures = [];
  cells = [];
  #refusals = new Map();
  explained = { lines: () => [...this.#refusals].map(([text, count]) => `${count} x the runtime refuses: ${text}`) };

  add(entry, outcome) {
    const { refusal } = entry;
    const cell = {
      ...entry,
      ...outcome,
      name: nameOf(entry),
      label: modelOf(entry),
      preset: presetOf(entry),
      bound: boundOf({ ...entry, ...outcome }),
      productBound: productBoundOf(entry),
    };
    cell.share = outcome.difference / outcome.size;
    cell.areTokensEqual = String(outcome.tokens) === String(outcome.referenceTokens);
    cell.problem = problemOf(cell);
    this.cells.push(cell);
    if (refusal && !cell.problem) this.fail(cell, `works now; take the refusal "${refusal}" from its entry`);
    else if (refusal && !cell.problem.includes(refusal)) this.fail(cell, `not "${refusal}", but: ${cell.problem}`);
    else if (refusal) {
      this.refused++;
      this.#refusals.set(refusal, (this.#refusals.get(refusal) ?? 0) + 1);
    } else if (cell.problem) this.fail(cell, cell.problem);
    else this.passed++;
  }

  fail(cell, why) {
    cell.isFailure = true;
    this.failures.push(`${cell.name}: ${why}`);
  }
}

/** Adds a case whose reference has one wrong scale. */
function addWrong(row, entry, outcome) {
  const share = outcome.difference / outcome.size;
  const measures = [['logits', share, boundOf({ ...entry, ...outcome })]];
  // What shows it: single products where the runtime gives them.
  if (Number.isFinite(outcome.product)) measures.unshift(['products', outcome.product, productBoundOf(entry)]);
  const [[what, found, bound]] = measures;
  const failures = [];
  if (outcome.error) failures.push(outcome.error);
  else if (!(found > bound)) failures.push(`${what} differ by ${found}, and the bound is ${bound}`);
  else
    row.seen.push(
      `${entry.format} ${entry.preset} ${entry.dtype}: ${what} ${found.toExponential(1)}, bound ${bound.toExponential(1)}`,
    );
  row.add(nameOf(entry), failures);
}

/** Writes folders of quantized models, each once. */
export class Writer {
  #opened = new Map();
  #written = new Map();

  constructor(quantizer, folder) {
    this.quantizer = quantizer;
    this.folder = folder;
  }

  async #open(folder) {
    if (!this.#opened.has(folder)) this.#opened.set(folder, await this.quantizer.open(folder));
    return this.#opened.get(folder);
  }

  async #write(model, config, options) {
    const key = JSON.stringify([model.name, config, options]);
    if (!this.#written.has(key)) {
      const target = join(this.folder, `${model.name}-${this.#written.size}`);
      const source = await this.#open(model.folder);
      const report = await this.quantizer.quantizeModel(source, config, { ...options, target });
      this.#written.set(key, { target, report });
    }
    return this.#written.get(key);
  }

  /** {folder, reference}: the model in the format, and the same layers' dequantized weights. */
  async write(model, { preset, format, options, algorithm, weight: differing, isWrong }) {
    const { config: plain } = this.quantizer.presets().find(({ name }) => name === preset);
    const { global_quant_config: whole } = plain;
    const layers = { ...whole, weight: { ...whole.weight, ...differing } };
    const config = { ...plain, global_quant_config: layers, ...(algorithm && { algo_config: [algorithm.config] }) };
    const calibrated = algorithm && { calibration: { tokens: { rows: [model.tokens] } } };
    const { target: folder, report } = await this.#write(model, config, { ...options, ...calibrated, format });
    const layersOf = (isWanted) => report.tensors.filter(({ action }) => isWanted(action)).map(({ layer }) => layer);
    const quantized = new Set(layersOf((action) => action === 'quantize'));
    // Copied, or cast to the dtype in which the loader computes.
    const kept = layersOf((action) => action !== 'quantize').filter((layer) => !quantized.has(layer));
    const { weight } = config.global_quant_config;
    // Which code a value halfway between two gets: x/s + z is rounded; AMD Quark, a plain simulation and algorithms that choose codes round x/s.
    const isShifted = weight.symmetric === false && format !== 'quark' && !algorithm;
    const order = isShifted ? { grid: { ...weight.grid, zero_point_order: 'before_rounding' } } : {};
    const scales = formatsOfFloat16Scales.includes(format) ? { scale_type: 'float16' } : {};
    const spec = { ...weight, ...scales, ...order };
    // Groups that do not fit are others in one format than in another.
    const groups = Object.fromEntries(
      report.tensors
        .filter(({ spec: planned }) => planned?.group_size > 0 && weight.qscheme === 'per_group')
        .map(({ layer, spec: planned }) => [layer, { weight: { ...spec, group_size: planned.group_size } }]),
    );
    const simulated = {
      ...config,
      global_quant_config: { weight: spec },
      layer_quant_config: groups,
      exclude: [...new Set([...config.exclude, ...kept])],
    };
    const { target: right } = await this.#write(model, simulated, { ...calibrated, format: 'fake-quantized' });
    const lengths = { per_tensor: 0, per_channel: Infinity };
    const reference = isWrong ? withWrongScale(right, lengths[weight.qscheme] ?? weight.group_size) : right;
    const { input_tensors: input } = config.global_quant_config;
    return {
      folder,
      reference,
      inputs: input?.dtype ?? null,
      inputGroup: input?.qscheme === 'per_group' ? input.group_size : null,
      quantized: [...quantized],
    };
  }

  async close() {
    for (const model of this.#opened.values()) await model.close();
  }
}

/** Outcomes of run.py: a case that ends its process is an outcome, too; the others are run by another process. */
async function outcomesOf(environment, folder, entries) {
  const outcomes = new Map();
  const file = join(folder, 'cases.jsonl');
  for (let left = entries; left.length > 0; left = left.filter(({ name }) => !outcomes.has(name))) {
    writeFileSync(file, left.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    try {
      for await (const outcome of environment.lines('run.py', file)) {
        outcomes.set(outcome.name, outcome);
        say(`${environment.name}: ${outcome.name}: ${outcome.error ?? outcome.difference}`);
      }
      break;
    } catch (error) {
      const ended = left.find(({ name }) => !outcomes.has(name));
      if (!ended) throw error;
      outcomes.set(ended.name, { error: error.message });
    }
  }
  return outcomes;
}

/** The rows of a runtime. `only`: a part of the names of the cases that are run; `writer`: of what is loaded. */
export async function checkRuntime(environment, quantizer, folder, { cases, only = '', writer: given }) {
  const row = new RuntimeRow();
  const wrong = Object.assign(new CaseRow('bounds: one wrong scale in the reference is beyond the bound'), {
    seen: [],
  });
  const add = (entry, outcome) => (entry.isWrong ? addWrong(wrong, entry, outcome) : row.add(entry, outcome));
  const writer = given ?? new Writer(quantizer, folder);
  const entries = [];
  for (const entry of cases.filter((one) => nameOf(one).includes(only))) {
    const { dtype } = entry;
    const model = await runtimeModel(entry.model);
    const name = nameOf(entry);
    try {
      const written = await writer.write(model, entry);
      entries.push({
        inputGroup: null,
        quantized: [],
        ...entry,
        ...written,
        name,
        dtype,
        tokens: model.tokens,
        isEncoder: model.isEncoder,
      });
    } catch (error) {
      add(entry, { error: `not written: ${error.message}` });
    }
  }
  await writer.close();
  const outcomes = await outcomesOf(environment, folder, entries);
  for (const entry of entries) add(entry, outcomes.get(entry.name) ?? { error: 'run.py did not answer' });
  wrong.note = wrong.seen.join('; ') || undefined;
  return wrong.passed + wrong.failures.length > 0 ? [row, wrong] : [row];
}
