// A case: a model, perhaps quantized once already, a config, an output format. Made from its number alone.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { safetensors } from '../../node/written_model.mjs';
import { differences, inParts, resumed } from './again.mjs';
import { errorsOf, howToLoad, namesOfEqualSpecs, noiseRatioOf, saidOf } from './facts.mjs';
import { writeGraph } from './graph_model.mjs';
import { Random } from './random.mjs';
import { randomConfig } from './random_specs.mjs';
import { dtypes, familyNames, kinds, randomSizes, writeModel } from './source_models.mjs';

const folderFormats = ['compressed-tensors', 'compressed-tensors', 'quark', 'quark', 'awq', 'gptq'];
const recipes = [
  'q4_0',
  'q4_1',
  'q5_0',
  'q5_1',
  'q8_0',
  'q4_k_m',
  'q3_k_m',
  'q2_k',
  'q6_k',
  'iq4_nl',
  'iq4_xs',
  'bf16',
  'f16',
  'tq2_0',
];

/** Types of files that are quantized once more, as people find them on hubs. */
const published = ['f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q4_k_m', 'q4_0'];

/** A tensor of llama as messages about a GGUF source or output may call it. */
function ggufNames(name) {
  const parts = {
    q: 'attn_q',
    k: 'attn_k',
    v: 'attn_v',
    o: 'attn_output',
    gate: 'ffn_gate',
    up: 'ffn_up',
    down: 'ffn_down',
  };
  const [, layer, part] = /layers\.(\d+)\..*\.(\w+)_proj/.exec(name ?? '') ?? [];
  return [name, part ? `blk.${layer}.${parts[part]}.weight` : 'output.weight'];
}

/** Codes that say that we failed, not the input. */
const unexpected = ['internal', 'engine-crashed', 'worker-crashed'];

/** Rows of tokens; half of the time some of them are padding that a mask names. */
function idsOf(random) {
  const shape = [4, 24];
  const data = Int32Array.from({ length: 4 * 24 }, () => random.below(256));
  if (random.chance(0.5)) return { data, shape };
  const lengths = shape.map(() => 1 + random.below(24)).concat(24, 24);
  const mask = Uint8Array.from(data, (_, at) => (at % 24 < lengths[Math.floor(at / 24)] ? 1 : 0));
  return { data, shape, mask: { data: mask, shape } };
}

export class SeamCase {
  /** `threads`: of the quantizer that runs it. */
  constructor(seed, folder, presets, threads) {
    this.seed = seed;
    this.threads = threads;
    this.folder = folder;
    this.random = new Random(seed * 2654435761);
    this.presets = presets;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }

  path(name) {
    return join(this.folder, name);
  }

  /** Runs it; resolves to what judge.py is asked, or to {refused}. Throws what is not an error of ours. */
  async run(quantizer) {
    const kind = this.random.next();
    if (kind < 0.12) return this.#graph(quantizer);
    return this.#checkpoint(quantizer, kind < 0.28);
  }

  describe() {
    return JSON.stringify(this.description);
  }

  async #quantize(quantizer, source, config, options) {
    const opened = await quantizer.open(source);
    try {
      const report = await quantizer.quantizeModel(opened, config, options);
      return { report };
    } catch (error) {
      if (error.name !== 'QuantizationError' || unexpected.includes(error.code)) throw error;
      return { refused: `${error.code}: ${error.message}`, error };
    } finally {
      await opened.close();
    }
  }

  async #graph(quantizer) {
    const { random } = this;
    const source = this.path('graph.onnx');
    const weights = writeGraph(source, random);
    writeFileSync(this.path('weights.safetensors'), safetensors(weights));
    const { config, spec, isNearest } = randomConfig(random, this.presets, false, 'onnx');
    const onnx = { qdq: random.chance(0.4), accuracyLevel: 1, externalData: random.chance(0.3) };
    this.description = { kind: 'onnx', config, onnx };
    const output = this.path('output.onnx');
    const { refused, report } = await this.#quantize(quantizer, source, config, { target: output, onnx });
    if (refused) return { refused };
    return {
      format: 'onnx',
      source: this.path('weights.safetensors'),
      model: source,
      output,
      report: saidOf(report),
      spec,
      isNearest: isNearest && Boolean(spec),
      reported: errorsOf(report, (name) => name.replace(/\.weight$/, '')),
      compared: {},
    };
  }

  async #checkpoint(quantizer, isGguf) {
    const { random } = this;
    const isLarge = !isGguf && random.chance(0.06);
    const family = isGguf || isLarge ? 'llama' : random.pick(familyNames);
    const shape = {
      family,
      dtype: random.pick(dtypes),
      sizes: randomSizes(random, isGguf, isLarge),
      isTied: random.chance(0.35),
      shards: random.pick([1, 2, 3]),
      kind: random.pick(kinds),
      spoiled: random.chance(0.1) ? random.pick(['NaN', 'Infinity', '-Infinity']) : null,
    };
    const known = writeModel(this.path('source'), random, shape);
    const tokens = { tokens: idsOf(random) };
    this.description = { ...shape, threads: this.threads };
    const outcome = await this.#ofSource(quantizer, isGguf, known, shape, tokens);
    if (outcome.error?.code !== 'value-not-finite') return outcome;
    // Before a weight is rounded, an algorithm may meet what it computed with another one.
    const names = isGguf ? ggufNames(known.spoiled) : [known.spoiled];
    const isNamed = names.some((name) => outcome.refused.includes(name)) || outcome.needsTokens;
    if (!shape.spoiled) throw new Error(`all values are finite: ${outcome.refused}`);
    if (!isNamed) throw new Error(`not ${known.spoiled}: ${outcome.refused}`);
    return { foreseen: true };
  }

  /** Quantizes the folder, or what it was made into before. */
  async #ofSource(quantizer, isGguf, known, shape, tokens) {
    const { random } = this;
    const { family } = shape;
    let source = this.path('source');
    if (isGguf && random.chance(0.5)) {
      const first = random.pick(published);
      const written = await this.#writeGguf(quantizer, source, first, 'first', random.chance(0.5));
      Object.assign(this.description, { first, parts: written.parts.length });
      if (written.refused) return written;
      source = written.parts[0];
    } else if (!isGguf && random.chance(0.35)) {
      const format = random.pick(folderFormats);
      const first = randomConfig(random, this.presets, false, format);
      Object.assign(this.description, { first: first.config, firstFormat: format });
      const options = { target: this.path('first'), format };
      const { refused, error } = await this.#quantize(quantizer, source, first.config, options);
      if (refused) return { refused, error };
      source = this.path('first');
    }
    if (isGguf) return this.#gguf(quantizer, source, known, shape);
    const format = random.pick(folderFormats);
    const wanted = randomConfig(random, this.presets, known.canRun, format);
    Object.assign(this.description, { config: wanted.config, format });
    const calibration = wanted.needsTokens ? { calibration: tokens } : {};
    const output = this.path('output');
    const run = { target: output, format, ...calibration };
    const { refused, error, report } = await this.#quantize(quantizer, source, wanted.config, run);
    if (refused) return { refused, error, needsTokens: wanted.needsTokens };
    const unequal = await this.#again(quantizer, source, wanted, run, report);
    const fake = await this.#quantize(quantizer, source, wanted.config, {
      ...run,
      target: this.path('fake'),
      format: 'fake-quantized',
    });
    const again = shape.spoiled ? null : await this.#readAgain(quantizer, output);
    const compared = wanted.isNearest ? await this.#compare(quantizer, source, output) : {};
    return {
      unequal,
      report: saidOf(report),
      format,
      family,
      decoded: this.path('decoded'),
      loadsAs: howToLoad(output),
      warned: report.diagnostics.filter(({ code }) => code.startsWith('loader-')).map(({ message }) => message),
      source,
      sourceShapes: known.shapes,
      output,
      fake: fake.report ? this.path('fake') : null,
      alike: fake.report ? namesOfEqualSpecs(report, fake.report, wanted.isNearest) : [],
      narrowed: report.tensors.filter(({ reason }) => /written as BF16/.test(reason?.text)).map(({ name }) => name),
      reread: again,
      spec: wanted.spec,
      isNearest: wanted.isNearest,
      reported: wanted.isNearest ? errorsOf(report) : {},
      compared,
      linear: known.linear,
      stacks: known.stacks,
      tied: known.tied,
      joinsScales: wanted.isNearest,
      keepsOthers: wanted.isNearest,
      casts: /float16/.test(JSON.stringify(wanted.config)),
      noiseRatio: noiseRatioOf(wanted, shape.dtype),
      scales: /"(awq|smoothquant|cle)"/.test(JSON.stringify(wanted.config)),
      dtype: shape.dtype,
      expectsQuantized: report.tensors.some(({ action }) => action === 'quantize'),
    };
  }

  /** The same in other ways: what differs from the output and its report. */
  async #again(quantizer, source, { config, needsTokens, isNearest }, options, report) {
    const way = this.random.below(needsTokens ? 2 : 4);
    const target = this.path('again');
    const opened = await quantizer.open(source);
    const run = (other) => quantizer.quantizeModel(opened, config, { ...options, ...other });
    const isWhole = report.files.length < 2 || !isNearest;
    try {
      if (way === 0) {
        const { report: second, wasStopped } = await resumed(run, target);
        this.description.wasStopped = wasStopped;
        return differences('resumed', [target, second], [options.target, report]);
      }
      if (way === 1 || isWhole) return [];
      const { report: merged } = await inParts(run, (folder) => quantizer.mergeShards(folder), target);
      return differences('in parts', [target, merged], [options.target, report]);
    } finally {
      await opened.close();
    }
  }

  /** One file, or the parts of one in a folder. */
  async #writeGguf(quantizer, source, recipe, name, isSplit) {
    const target = this.path(isSplit ? `${name}-parts` : `${name}.gguf`);
    const gguf = isSplit ? { gguf: { shardBytes: 20_000 + this.random.below(60_000) } } : {};
    const run = { target, format: 'gguf', ...gguf };
    const { refused, error, report } = await this.#quantize(quantizer, source, recipe, run);
    if (refused) return { refused, error, parts: [] };
    const parts = isSplit ? report.files.map((file) => join(target, file.name)) : [target];
    return { report, parts: parts.filter((path) => path.endsWith('.gguf')) };
  }

  /** `source`: the folder, or a GGUF file made of it, perhaps the first part of several. */
  async #gguf(quantizer, source, known, shape) {
    const config = this.random.pick(recipes);
    Object.assign(this.description, { config, format: 'gguf' });
    const isSplit = this.random.chance(0.3);
    const { refused, error, report, parts } = await this.#writeGguf(quantizer, source, config, 'output', isSplit);
    if (refused) return { refused, error };
    this.description.outputParts = parts.length;
    return {
      report: saidOf(report),
      format: 'gguf',
      family: shape.family,
      model: this.path('source'),
      source,
      sourceShapes: known.shapes,
      output: parts[0],
      fake: null,
      alike: [],
      narrowed: [],
      reread: null,
      spec: null,
      isNearest: true,
      reported: errorsOf(report),
      compared: await this.#compare(quantizer, source, parts[0]),
      linear: known.linear,
      stacks: known.stacks,
      tied: known.tied,
      joinsScales: true,
      keepsOthers: true,
      casts: /f16/.test(config),
      noiseRatio: 1.05,
      dtype: shape.dtype,
      expectsQuantized: !['bf16', 'f16'].includes(config) && report.tensors.some(({ action }) => action === 'quantize'),
    };
  }

  /** Our own reader's values of what we wrote, as bfloat16. */
  async #readAgain(quantizer, output) {
    const target = this.path('reread');
    const { refused } = await this.#quantize(
      quantizer,
      output,
      { global_quant_config: { weight: { dtype: 'bfloat16' } } },
      { target, format: 'fake-quantized' },
    );
    if (refused) throw new Error(`our own output is refused: ${refused}`);
    return target;
  }

  async #compare(quantizer, source, output) {
    const [reference, quantized] = [await quantizer.open(source), await quantizer.open(output)];
    try {
      return errorsOf(await quantizer.compare(reference, quantized));
    } finally {
      await reference.close();
      await quantized.close();
    }
  }
}
