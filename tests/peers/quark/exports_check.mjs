// Checkpoints exported by Quark beside ours, made from the same float model with the config that Quark wrote: the same tensors, byte for byte. Both
// are opened by Quark's loader, where they give the same logits, and Quark's are opened by us, where they have the values that Quark finds.
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { root } from '../../setup/command.mjs';
import { runtimeModel } from '../models/models.mjs';
import { writeSlice } from './calibration_tokens.mjs';
import { blockDifferences, exportRefusals, quarkRefusals, specDifferences } from './differences/export_differences.mjs';
import { Row } from './rows.mjs';

const tinyLlama = join(root, 'tests/files/tiny-llama');
const smolLm = 'smollm2';
/** Largest difference of logits for files whose bytes differ as listed, as a part of the largest logit. */
const logitBound = 0.05;
/** Files that wait for the loader, which is started for many at once. */
const pairsBytes = 2 ** 30;

/** Tensors of a safetensors file: name to {dtype, shape, bytes}. */
function tensorsOf(folder) {
  const file = readFileSync(join(folder, 'model.safetensors'));
  const start = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__, ...header } = JSON.parse(file.subarray(8, start));
  return new Map(
    Object.entries(header).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [begin, end],
        },
      ]) => [name, { dtype, shape, bytes: file.subarray(start + begin, start + end) }],
    ),
  );
}

/** Tensors that are not the same in both folders. */
function differingTensors(oursIn, theirsIn) {
  const [ours, theirs] = [tensorsOf(oursIn), tensorsOf(theirsIn)];
  const found = [];
  for (const name of new Set([...ours.keys(), ...theirs.keys()])) {
    const [a, b] = [ours.get(name), theirs.get(name)];
    const isSameType = a && b && a.dtype === b.dtype && a.shape.join() === b.shape.join();
    if (isSameType && a.bytes.equals(b.bytes)) continue;
    found.push({ name, ours: a, theirs: b });
  }
  return found;
}

const textOf = (tensor) => (tensor ? `${tensor.dtype} [${tensor.shape}]` : 'nothing');

/** Paths of the block at which both say something else, without those that are listed. */
function differingKeys(ours, theirs, path = '') {
  if (path in blockDifferences || path.split('/').at(-1) in specDifferences) return [];
  // Quark's null means float.
  if (path.endsWith('/scale_type') && (theirs ?? 'float') === ours) return [];
  const isObject = (value) => value !== null && typeof value === 'object';
  if (!isObject(ours) || !isObject(theirs)) return JSON.stringify(ours) === JSON.stringify(theirs) ? [] : [path];
  const keys = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...keys].flatMap((key) => differingKeys(ours[key], theirs[key], path ? `${path}/${key}` : key));
}

/** Routers are excluded in ours; Quark does not name them. */
function blockOf(folder) {
  const block = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).quantization_config;
  return { ...block, exclude: block.exclude.filter((name) => !name.endsWith('.mlp.gate')) };
}

/** Of schemes whose activations have static scales of scales, weights alone are compared. */
const isOfWeightsAlone = (scheme) => /^(nvfp4|fp4_block16)/.test(scheme);

/** The config that Quark wrote, with the keys that its export leaves out. */
function configOf(folder, name, sharing) {
  const { algo_config, ...block } = blockOf(folder);
  const config = { ...block, ...sharing };
  if (isOfWeightsAlone(name)) config.global_quant_config.input_tensors = null;
  return config;
}

class ExportCheck {
  /** Written and not yet loaded, by name: {name, theirs, ours}. */
  pairs = new Map();

  constructor(environment, quantizer, folder, title) {
    Object.assign(this, { environment, quantizer, folder });
    this.bytes = new Row(
      `${title}: a model quantized with Quark’s config is, tensor by tensor, the bytes that Quark exports`,
    );
    this.blocks = new Row(`${title}: quantization_config says what Quark’s export says`);
    this.logits = new Row(`${title}: our files in Quark’s loader give the logits of Quark’s`);
    this.values = new Row(`${title}: Quark’s files opened by us have the values that Quark dequantizes`);
  }

  async run(models) {
    writeSlice('calib', [4, 64], join(this.folder, 'tokens.safetensors'));
    for (const model of models) {
      const source = model === smolLm ? `${(await runtimeModel(smolLm)).folder}:float16` : model;
      for await (const line of this.environment.lines('export_models.py', this.folder, source)) await this.export(line);
      await this.load();
    }
    return [this.bytes, this.blocks, this.logits, this.values];
  }

  async export(line) {
    const name = `${basename(line.model)} ${line.name}`;
    if (line.error) {
      if (this.bytes.explained.by(quarkRefusals, line)) this.bytes.refused++;
      else this.bytes.fail(name, `Quark does not export it: ${line.error}`);
      return;
    }
    const ours = `${line.folder}.ours`;
    // Exports of values are read, and not written.
    const isWritten = !line.name.endsWith('fake_quantized') && (await this.quantize(name, line, ours));
    if (isWritten) this.compare(name, line, ours);
    const isAsked = isWritten && !isOfWeightsAlone(line.name);
    this.pairs.set(name, { name, theirs: line.folder, ours: isAsked ? ours : '' });
    if (statSync(join(line.folder, 'model.safetensors')).size * this.pairs.size > pairsBytes) await this.load();
  }

  /** Whether ours takes the config. */
  async quantize(name, { name: scheme, source, folder, activations, sharing }, target) {
    const model = await this.quantizer.open(source);
    try {
      const config = configOf(folder, scheme, sharing);
      await this.quantizer.quantizeModel(model, config, { target, format: 'quark', calibration: activations });
      return true;
    } catch (error) {
      if (!error.code) throw error;
      const errors = (error.diagnostics ?? []).filter(({ severity }) => severity === 'error');
      this.bytes.add(name, { problems: errors.length > 0 ? errors : [error], explanations: exportRefusals });
      return false;
    } finally {
      model.close();
    }
  }

  compare(name, { name: scheme, folder }, target) {
    const isWeightsOnly = isOfWeightsAlone(scheme);
    const all = differingTensors(target, folder);
    const differing = all.filter(({ name: tensor }) => !(isWeightsOnly && tensor.endsWith('.input_scale_2')));
    const [first] = differing;
    if (first)
      this.bytes.fail(
        name,
        `${first.name} and ${differing.length - 1} more: ours ${textOf(first.ours)}, Quark ${textOf(first.theirs)}`,
      );
    else if (all.length > 0) this.bytes.differing++;
    else this.bytes.passed++;
    const keys = differingKeys(blockOf(target), blockOf(folder)).filter(
      (path) => !(isWeightsOnly && path === 'global_quant_config/input_tensors'),
    );
    if (keys.length > 0) this.blocks.fail(name, keys.join(', '));
    else this.blocks.passed++;
  }

  /** Opens all pairs in Quark's loader, and what it finds in ours; then they are deleted. */
  async load() {
    const file = join(this.folder, 'pairs.jsonl');
    writeFileSync(file, [...this.pairs.values()].map((pair) => `${JSON.stringify(pair)}\n`).join(''));
    for await (const line of this.environment.lines('load_models.py', this.folder, file)) {
      const pair = this.pairs.get(line.name);
      this.pairs.delete(line.name);
      if (!line.error || line.of === 'ours') await this.open(line.name, pair.theirs);
      this.judge(line, pair);
      for (const made of [pair.theirs, pair.ours, `${pair.theirs}.values`])
        if (made) rmSync(made, { recursive: true, force: true });
    }
    for (const name of this.pairs.keys()) this.logits.fail(name, 'not loaded');
    this.pairs.clear();
  }

  judge({ name, of, error, largest, difference }, { ours }) {
    if (error && !ours) this.logits.refused++;
    else if (error) this.logits.fail(name, `Quark does not load ${of}: ${error}`);
    else if (difference === 0) this.logits.passed++;
    else if (difference !== null && difference <= logitBound * largest) this.logits.differing++;
    else if (difference !== null) this.logits.fail(name, `logits differ by ${difference}, of ${largest}`);
  }

  async open(name, folder) {
    const [theirs, reference] = [await this.quantizer.open(folder), await this.quantizer.open(`${folder}.values`)];
    try {
      const { tensors } = await this.quantizer.compare(reference, theirs);
      const wrong = tensors.filter(({ error }) => error.maxAbs !== 0);
      if (tensors.length === 0) this.values.fail(name, 'no weight was compared');
      else if (wrong.length > 0) this.values.fail(name, `${wrong[0].name} differs by up to ${wrong[0].error.maxAbs}`);
      else this.values.passed++;
    } finally {
      theirs.close();
      reference.close();
    }
  }
}

/** Names of models in tiny_models.py, and folders. */
export const exportedModels = [tinyLlama, 'llama:bfloat16', 'llama:float16', 'qwen3_moe', 'mixtral:bfloat16'];
export const largeModels = [smolLm];

/** Rows of the table, whose names begin with `title`. */
export const checkExports = (environment, quantizer, folder, _, models, title) =>
  new ExportCheck(environment, quantizer, folder, title).run(models);
