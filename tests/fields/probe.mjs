// What becomes of a field: it is set alone, to values other than its standard one, in every config of contexts.mjs that
// has a place for it, and the run is compared with the one without it.
//   applied   something of the result differs: a tensor's spec, bytes of a file, the config block of the output
//   refused   an error names the field
//   remark    a warning or note names the field
//   silent    none of these: the field is read and dropped
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { createQuantizer } from '../../dist/node.js';
import { algorithms, contexts, specs, valuesByName, valuesByType } from './contexts.mjs';
import { activations, openModels, tokens } from './models.mjs';
import { dialects, fieldsOf } from './schema_fields.mjs';

/** Outcomes, the one that says most first. */
const rank = ['applied', 'refused', 'remark', 'silent'];

const isAlgorithm = (part) => part?.startsWith('[');

/** Specs of weights are tried where files have no words for them: only bytes can show that they are applied. */
const isOfWeights = (path) => path.slice(0, -1).some((part) => /^weights?(_quant)?$/.test(part));

/** Whether a field is tried in a context. */
function suits({ calibration, format, runsAlgorithms = calibration === 'tokens' }, path) {
  if (path.some((part) => isAlgorithm(part))) return runsAlgorithms;
  if (path.length === 1 && path[0].startsWith('kv_cache_')) return true;
  if (path.includes('grid') || path.includes('observer_options')) return calibration !== 'tokens';
  if (isOfWeights(path)) return format === 'fake-quantized' && calibration === undefined;
  return calibration !== 'tokens';
}

/** The values that are tried. */
export function valuesFor(dialect, { path, values, standard, types }) {
  const key = path.at(-1);
  const algorithm = path.at(-2);
  const own = isAlgorithm(algorithm) ? valuesByName[`${algorithm.slice(1, -1)}.${key}`] : undefined;
  const isSpec = /^(weights?|bias|(input|output)_(tensors|activations)|weight_quant|activation_quant)$/.test(key);
  const named = own ?? valuesByName[key];
  if (named) return named;
  const tried = values ?? (isSpec ? specs[dialect] : undefined) ?? types.flatMap((type) => valuesByType[type] ?? []);
  return tried.filter((value) => !isDeepStrictEqual(value, standard));
}

/** The object that a path ends in, of a copy of the config: {config, parent, pointer}; null if there is no place. */
function place(config, path, base) {
  const copy = JSON.parse(JSON.stringify(config));
  let parent = copy;
  let pointer = '';
  for (const part of path.slice(0, -1)) {
    let key = part;
    if (part === '*') [key] = Object.keys(parent);
    if (isAlgorithm(part)) {
      const name = part.slice(1, -1);
      key = parent.findIndex((item) => item.name === name);
      if (key < 0) key = parent.push({ name, ...base }) - 1;
    }
    const isList = part === 'algo_config' || part === 'pre_quant_opt_config';
    if (isList && parent[key] === undefined) parent[key] = [];
    if (key === undefined || parent[key] === undefined || parent[key] === null) return null;
    parent = parent[key];
    pointer += `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }
  return { config: copy, parent, pointer };
}

/** Whether a diagnostic is about a field: at its place or inside, or at the object around it with its name in the text. */
function names({ where, message, code }, pointer, parent, key) {
  if (where === pointer || where.startsWith(`${pointer}/`)) return true;
  const isAround = parent === where || parent.startsWith(`${where}/`) || where === '';
  if (isAround && new RegExp(`(^|[^a-z_])${key}([^a-z_]|$)`).test(message)) return true;
  // A part that is not applied as a whole.
  return isAround && where !== '' && code === 'not-applied';
}

export class Prober {
  constructor(quantizer, models) {
    this.quantizer = quantizer;
    this.models = models;
    this.runs = new Map();
  }

  /** {diagnostics, error}, or {diagnostics, outcome, result}: tensors and bytes, and these with the config block. */
  run(context, config) {
    const key = JSON.stringify([context.model, context.format, context.calibration, config]);
    if (!this.runs.has(key)) this.runs.set(key, this.#run(context, config));
    return this.runs.get(key);
  }

  async #run({ model, format, calibration }, config) {
    const files = createHash('sha256');
    const target = {
      write: async () => new WritableStream({ write: (chunk) => void files.update(chunk) }),
    };
    const data = calibration === 'tokens' ? tokens : calibration === 'activations' ? activations[model] : undefined;
    try {
      const plan = await this.quantizer.plan(this.models[model], config, { format, calibrated: data !== undefined });
      const report = await this.quantizer.quantizeModel(this.models[model], config, {
        target,
        format,
        calibration: data,
      });
      const tensors = plan.tensors.map(({ name, action }) => [name, action]);
      // A spec repeats the keys of `grid` and `observer_options`, whether they have an effect or not.
      const specs = plan.tensors.map(({ spec }) => spec && { ...spec, grid: 0, observer_options: 0 });
      const outcome = JSON.stringify([tensors, files.digest('hex')]);
      const result = JSON.stringify([outcome, specs, plan.quantizationConfig ?? null]);
      return { diagnostics: report.diagnostics, outcome, result };
    } catch (error) {
      if (error?.code === undefined || error.code === 'engine-crashed') throw error;
      const own = { severity: 'error', code: error.code, where: error.where ?? '', message: error.message };
      return { diagnostics: [...(error.diagnostics ?? []), own], error };
    }
  }

  /** Of one value in one context: {outcome, code}; null if the context has no place for it. */
  async #try(context, path, value) {
    const name = path.find((part) => isAlgorithm(part))?.slice(1, -1);
    const found = [];
    for (const base of algorithms[name] ?? [{}]) {
      const result = await this.#tryOn(base, context, path, value);
      if (result) found.push(result);
    }
    return (
      found
        .sort((a, b) => rank.indexOf(a.outcome) - rank.indexOf(b.outcome))
        .find(({ outcome }) => rank.includes(outcome)) ?? null
    );
  }

  async #tryOn(base, context, path, value) {
    const key = path.at(-1);
    const isItem = isAlgorithm(key);
    const without = place(context.config, path, base);
    const withField = place(context.config, path, base);
    if (without === null || Array.isArray(without.parent) !== isItem) return null;
    if (isItem) withField.parent.push({ name: key.slice(1, -1), ...base });
    else withField.parent[key] = value;
    if (!isItem && isDeepStrictEqual(without.parent[key], value)) return null;
    const before = await this.run(context, without.config);
    const after = await this.run(context, withField.config);
    // What is refused as a whole is refused in each of its fields.
    const whole = before.error?.where;
    // An algorithm may also be refused for its place among others.
    const isUnknown = before.diagnostics.some(({ code, where }) => code === 'not-implemented' && where === whole);
    if (
      whole &&
      (isUnknown || !path.some(isAlgorithm)) &&
      withField.pointer &&
      (whole === withField.pointer || withField.pointer.startsWith(`${whole}/`))
    )
      return { outcome: 'refused', code: before.error.code };
    // A field may be what lets a config quantize anything at all.
    if (before.error && (before.error.code !== 'nothing-quantized' || after.error)) return null;
    const pointer = `${withField.pointer}/${isItem ? withField.parent.length - 1 : key}`;
    const about = after.diagnostics.filter((diagnostic) =>
      names(diagnostic, pointer, withField.pointer, isItem ? key.slice(1, -1) : key),
    );
    const remark = about.find(({ severity }) => severity !== 'error');
    if (after.error) {
      const refusal = about.find(({ severity }) => severity === 'error');
      if (refusal) return { outcome: 'refused', code: refusal.code };
      // What fails only with this value, for a reason that is not the config's, is applied: non_finite.
      return { outcome: after.error.code === 'config-invalid' ? 'other error' : 'applied', code: '' };
    }
    if (after.result !== before.result)
      return { outcome: 'applied', code: '', config: withField.config, without: without.config, pointer };
    return remark ? { outcome: 'remark', code: remark.code } : { outcome: 'silent', code: '' };
  }

  /** The first context in which a field with this value changes the result: {context, config, without, pointer}, or null. */
  async firstVariant(dialect, field, value) {
    for (const context of contexts[dialect]) {
      if (!suits(context, field.path)) continue;
      const result = await this.#try(context, field.path, value);
      if (result?.config) return { context, ...result };
    }
    return null;
  }

  /** {applied, refused, remark, silent}: of each, the values, with the codes of diagnostics. */
  async outcomeOf(dialect, field) {
    const found = { applied: [], refused: [], remark: [], silent: [] };
    for (const value of isAlgorithm(field.path.at(-1)) ? [undefined] : valuesFor(dialect, field)) {
      let best = null;
      for (const context of contexts[dialect]) {
        if (!suits(context, field.path)) continue;
        const result = await this.#try(context, field.path, value);
        if (result === null || !rank.includes(result.outcome)) continue;
        if (best === null || rank.indexOf(result.outcome) < rank.indexOf(best.outcome)) best = result;
        if (best.outcome === 'applied') break;
      }
      if (best) found[best.outcome].push({ value, code: best.code });
    }
    return found;
  }
}

/** Quark's `grid` and `observer_options` of weights, inputs and outputs are one: some of their keys show in one of them only. */
function merged(rows) {
  const own = /^global_quant_config\.(\w+)\.(grid|observer_options)\.(\w+)$/;
  const kept = new Map();
  for (const row of rows) {
    const found = own.exec(row.path);
    const path = found ? `global_quant_config.weight.${found[2]}.${found[3]}` : row.path;
    const known = kept.get(path);
    if (!known) kept.set(path, { ...row, path });
    else
      for (const name of rank.slice(0, 3))
        known[name] = known[name].concat(
          row[name].filter(({ value }) => !known[name].some((item) => isDeepStrictEqual(item.value, value))),
        );
  }
  for (const row of kept.values())
    row.silent = row.silent.filter(
      ({ value }) => !rank.slice(0, 3).some((name) => row[name].some((item) => isDeepStrictEqual(item.value, value))),
    );
  return [...kept.values()];
}

/** Whether a row is of a field that is read and dropped: no value shows, or more words of an enumeration than its default do not. */
export function isDropped({ applied, refused, remark, silent, values }) {
  if (applied.length + refused.length + remark.length === 0) return true;
  return values !== undefined && values[0] !== true && silent.length > 1;
}

/** Whether a value of a row's field is read, and nothing comes of it but a warning. */
export const isNotApplied = ({ remark }) => remark.some(({ code }) => code === 'not-applied');

/** Calls `use` with a prober whose models are in a folder that ends with it. */
export async function withProber(use) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-fields-'));
  const quantizer = await createQuantizer({ threads: 0 });
  try {
    return await use(new Prober(quantizer, await openModels(quantizer, folder)));
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** {dialect: [{path, applied, refused, remark, silent}]}; `only`: of fields whose path has this text. */
export async function probeAll(prober, chosen = dialects, only = '') {
  const table = {};
  for (const dialect of chosen) {
    table[dialect] = [];
    for (const field of fieldsOf(dialect)) {
      const path = field.path.join('.');
      if (path.includes(only))
        table[dialect].push({ path, ...(await prober.outcomeOf(dialect, field)), values: field.values });
    }
    table[dialect] = merged(table[dialect]);
  }
  return table;
}
