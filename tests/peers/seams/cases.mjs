// A case: a model, perhaps quantized once already, a config, an output format. Made from its number alone.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { graph, model, node, tensor } from '../../node/onnx/model.mjs';
import { safetensors } from '../../node/written_model.mjs';
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

/** Values of a graph's weights, and the graph: each is multiplied in a branch of its own, `<name>.x` to `<name>.y`. */
function writeGraph(path, random) {
  const nodes = [];
  const tensors = [];
  const inputs = [];
  const outputs = [];
  const weights = {};
  for (let index = 0; index < 3; ++index) {
    const name = `layer${index}`;
    const isGemm = random.chance(0.4);
    const [rows, columns] = [1 + random.below(60), random.pick([8, 16, 30, 32, 48, 64, 90, 96, 128, 160])];
    const data = Float32Array.from({ length: rows * columns }, () => random.normal() / 8);
    weights[name] = { dtype: 'F32', shape: [rows, columns], data };
    const stored = isGemm ? data : transposed(data, rows, columns);
    tensors.push(tensor(`${name}.weight`, 'F32', isGemm ? [rows, columns] : [columns, rows], stored));
    const attributes = isGemm ? { transB: 1 } : {};
    nodes.push(
      node(isGemm ? 'Gemm' : 'MatMul', [`${name}.x`, `${name}.weight`], [`${name}.y`], {
        name: `/${name}/op`,
        ...attributes,
      }),
    );
    inputs.push([`${name}.x`, 'F32', [`n${index}`, columns]]);
    outputs.push([`${name}.y`, 'F32', [`n${index}`, rows]]);
  }
  writeFileSync(path, model(graph({ nodes, tensors, inputs, outputs }), { opset: random.pick([13, 17, 21]) }));
  return weights;
}

function transposed(data, rows, columns) {
  const result = new Float32Array(data.length);
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) result[column * rows + row] = data[row * columns + column];
  return result;
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
  constructor(seed, folder, presets) {
    this.seed = seed;
    this.folder = folder;
    this.random = new Random(seed * 2654435761);
    this.presets = presets;
    for (const name of ['source', 'first', 'first-parts', 'output', 'output-parts', 'fake', 'reread', 'decoded'])
      rmSync(join(folder, name), { recursive: true, force: true });
  }

  path(name) {
    return join(this.folder, name);
  }

  /** Runs it; resolves to what judge.py is asked, or to {refused}. Throws what is not an error of ours. */
  async run(quantizer) {
    const kind = this.random.next();
    if (kind < 0.12) return this.#graph(quantizer);
    return this.#checkpoint(quantizer, kind < 0.24);
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
      return { refused: `${error.code}: ${error.message}` };
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
    rmSync(output, { force: true });
    const { refused, report } = await this.#quantize(quantizer, source, config, {
      target: output,
      overwrite: true,
      onnx,
    });
    if (refused) return { refused };
    return {
      format: 'onnx',
      source: this.path('weights.safetensors'),
      output,
      spec,
      isNearest: isNearest && Boolean(spec),
      reported: errorsOf(report, (name) => name.replace(/\.weight$/, '')),
      compared: {},
    };
  }

  async #checkpoint(quantizer, isGguf) {
    const { random } = this;
    const family = isGguf ? 'llama' : random.pick(familyNames);
    const shape = {
      family,
      dtype: random.pick(dtypes),
      sizes: randomSizes(random, isGguf),
      isTied: random.chance(0.35),
      shards: random.pick([1, 1, 2, 3]),
      kind: random.pick(kinds),
      withTokenizer: true,
    };
    const known = writeModel(this.path('source'), random, shape);
    const tokens = { tokens: idsOf(random) };
    this.description = { ...shape };
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
      const { refused } = await this.#quantize(quantizer, source, first.config, { target: this.path('first'), format });
      if (refused) return { refused };
      source = this.path('first');
    }
    if (isGguf) return this.#gguf(quantizer, source, known, shape);
    const format = random.pick(folderFormats);
    const wanted = randomConfig(random, this.presets, known.canRun, format);
    Object.assign(this.description, { config: wanted.config, format });
    const calibration = wanted.needsTokens ? { calibration: tokens } : {};
    const output = this.path('output');
    rmSync(output, { recursive: true, force: true });
    const run = { target: output, format, ...calibration };
    const { refused, report } = await this.#quantize(quantizer, source, wanted.config, run);
    if (refused) return { refused };
    const fake = await this.#quantize(quantizer, source, wanted.config, {
      ...run,
      target: this.path('fake'),
      format: 'fake-quantized',
    });
    const again = await this.#readAgain(quantizer, output);
    const compared = wanted.isNearest ? await this.#compare(quantizer, source, output) : {};
    return {
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

  /** One file, or the parts of one in a folder. */
  async #writeGguf(quantizer, source, recipe, name, isSplit) {
    const target = this.path(isSplit ? `${name}-parts` : `${name}.gguf`);
    rmSync(target, { recursive: true, force: true });
    const gguf = isSplit ? { gguf: { shardBytes: 20_000 + this.random.below(60_000) } } : {};
    const { refused, report } = await this.#quantize(quantizer, source, recipe, { target, format: 'gguf', ...gguf });
    if (refused) return { refused, parts: [] };
    const parts = isSplit ? report.files.map((file) => join(target, file.name)) : [target];
    return { report, parts: parts.filter((path) => path.endsWith('.gguf')) };
  }

  /** `source`: the folder, or a GGUF file made of it, perhaps the first part of several. */
  async #gguf(quantizer, source, known, shape) {
    const config = this.random.pick(recipes);
    Object.assign(this.description, { config, format: 'gguf' });
    const { refused, report, parts } = await this.#writeGguf(
      quantizer,
      source,
      config,
      'output',
      this.random.chance(0.3),
    );
    if (refused) return { refused };
    this.description.outputParts = parts.length;
    return {
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

/** How much larger than that of fake-quantized weights an error may be, which have scales of float32. */
function noiseRatioOf({ config, isNearest }, dtype) {
  // Algorithms add up what each column leaves to the next, and scales of 8 bits set them on another path.
  if (!isNearest) return 1.5;
  // Such scales stretch a range of zero points and codes of 8 bits by up to half a step at its end.
  return dtype !== 'F32' && /"(u?int8|mx)"/.test(JSON.stringify(config)) ? 1.3 : 1.05;
}

/** As our load lines say: packed zero points need dequantize, and the weights of MX and NVFP4 become bfloat16. */
function howToLoad(folder) {
  const path = join(folder, 'config.json');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const isPackedWithZeros = /"symmetric": ?false/.test(text) && /pack-quantized/.test(text);
  return {
    dtype: /(mxfp|nvfp)\d/.test(text) ? 'bfloat16' : 'float32',
    dequantize: isPackedWithZeros,
    roundsInputs: /"(is_)?dynamic": ?(true|"local")/.test(text),
  };
}

/**
 * Tensors that both runs quantized by one spec: a format may make others fall back to what it stores. Algorithms see the layers before, so
 * that with one of them all have to be equal or none is.
 */
function namesOfEqualSpecs(report, other, isNearest) {
  const specs = new Map(other.tensors.map(({ name, spec }) => [name, JSON.stringify(spec)]));
  const equal = report.tensors.filter(({ name, spec }) => specs.get(name) === JSON.stringify(spec));
  return isNearest || equal.length === report.tensors.length ? equal.map(({ name }) => name) : [];
}

const errorsOf = (report, rename = (name) => name) =>
  Object.fromEntries(report.tensors.filter(({ error }) => error).map(({ name, error }) => [rename(name), error.mse]));
