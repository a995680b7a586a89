// ONNX models that onnxruntime loads: made of a checkpoint once (make_onnx.py), quantized by the library; and the same float model with the
// library's dequantized weights written over its own, in place.
import { createHash } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { root, say } from '../../setup/command.mjs';
import { Writer } from '../runtimes/runtimes.mjs';

const script = join(root, 'tests/peers/onnxruntime/make_onnx.py');
const pins = join(root, 'tests/peers/onnxruntime/requirements.txt');

/** Columns as rows. */
function transposed(values, [rows, columns]) {
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) out[column * rows + row] = values[row * columns + column];
  return out;
}

/**
 * Writes `tensor` of a float32 file as its spec makes it. MatMul has its weights [in, out], and so axes of a spec count; but those of
 * MatMulNBits, whose codes are [out, groups, bytes], count in [out, in]. `isWrong`: the first scale of the matrix is doubled.
 */
function rewrite(quantizer, folder, { name, dtype, shape, file, begin, end }, { spec, outputs, layerType }, isWrong) {
  if (dtype !== 'F32' || shape.length !== 2)
    throw new Error(`${name} is ${dtype} of ${shape.length} axes, not a float32 matrix`);
  const descriptor = openSync(join(folder, file), 'r+');
  try {
    const bytes = Buffer.alloc(end - begin);
    readSync(descriptor, bytes, 0, bytes.length, begin);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    // Codes, not fakeQuantize: halfway between two codes, zero points make the two differ.
    const decoded = (data, axes) => quantizer.dequantize(quantizer.quantize({ data, shape: axes }, spec));
    const reversed = shape.toReversed();
    const dequantized =
      outputs[0].shape.length === 3 && layerType !== 'Embedding'
        ? transposed(decoded(transposed(values, shape), reversed), reversed)
        : decoded(values, shape);
    if (isWrong) doubleScale(dequantized, shape, spec);
    writeSync(descriptor, new Uint8Array(dequantized.buffer, dequantized.byteOffset), 0, bytes.length, begin);
  } finally {
    closeSync(descriptor);
  }
}

/** Doubles what the scale of the first output, and of its first group, covers in `values` [in, out]. */
function doubleScale(values, [inputs, outputs], { qscheme, group_size: group }) {
  const columns = qscheme === 'per_tensor' ? outputs : 1;
  const rows = qscheme === 'per_group' ? Math.min(group, inputs) : inputs;
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) values[row * outputs + column] *= 2;
}

export class OnnxWriter extends Writer {
  #references = new Map();

  constructor(environment, quantizer, folder) {
    super(quantizer, folder);
    this.environment = environment;
  }

  /** The float32 ONNX model of a checkpoint, made on the first use. */
  async #floatModel({ name, folder }) {
    const target = join(root, '.peers-python/models', `${name}-onnx`);
    const stamp = `${target}.ready`;
    const digest = createHash('sha256').update(readFileSync(script)).update(readFileSync(pins)).digest('hex');
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return target;
    say(`making .peers-python/models/${name}-onnx`);
    rmSync(target, { recursive: true, force: true });
    await this.environment.run(script, folder, target);
    writeFileSync(stamp, digest);
    return target;
  }

  /** The preset, or with `isPadded` its config whose last groups of a row may end short. */
  #configOf({ preset, isPadded }) {
    if (!isPadded) return preset;
    const { config } = this.quantizer.presets().find(({ name }) => name === preset);
    const weight = { ...config.global_quant_config.weight, grid: { pads_groups: true } };
    return { ...config, indivisible_groups: 'error', global_quant_config: { ...config.global_quant_config, weight } };
  }

  async write(model, entry) {
    const { preset, format, options, isWrong } = entry;
    if (format !== 'onnx') return super.write(model, entry);
    const source = await this.#floatModel(model);
    const opened = await this.quantizer.open(source);
    try {
      const folder = join(this.folder, `${model.name}-${preset}-${this.#references.size}`);
      mkdirSync(folder);
      // A folder as a target would be laid out for transformers.js where no genai_config.json names the file.
      const target = model.isEncoder ? join(folder, 'model.onnx') : folder;
      const given = this.#configOf(entry);
      await this.quantizer.quantizeModel(opened, given, { ...options, target, overwrite: true });
      const { tensors } = await this.quantizer.plan(opened, given, options);
      const quantized = tensors.filter(({ action }) => action === 'quantize');
      if (quantized.length === 0) throw new Error('no weight is quantized');
      const reference = `${folder}-reference`;
      this.#references.set(folder, reference);
      cpSync(source, reference, { recursive: true });
      const wrong = isWrong && quantized.find(({ name }) => /down_proj/.test(name));
      for (const planned of quantized) {
        const tensor = opened.tensors.find(({ name }) => name === planned.name);
        rewrite(this.quantizer, reference, tensor, planned, planned === wrong);
      }
      const { config } = this.quantizer.presets().find((found) => found.name === preset);
      const { input_tensors: input } = config.global_quant_config ?? {};
      const inputs = input?.is_dynamic ? 'uint8' : null; // DynamicQuantizeLinear
      return { folder, reference, inputs, inputGroup: null };
    } finally {
      await opened.close();
    }
  }
}
