// Feeds of an ONNX model from .npy, .npz and safetensors arrays named like the model's inputs. Everything is checked
// against the graph before anything runs; values are read sample by sample.

import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { Model, TensorInfo } from '../api/types.js';
import { OpenedModel } from './model.js';
import { inputsOf, inputText, type ModelInput } from './onnx_inputs.js';
import type { Feed, TensorClass } from './onnx_session.js';

/** Samples in file order. Every iteration reads them again. */
export interface FileFeeds extends AsyncIterable<Feed> {
  /** Number of samples. */
  readonly count: number;
}

/** Calibration uses hundreds; a file with more than this has no samples. */
const mostSamples = 65_536;

type Elements = new (buffer: ArrayBuffer) => ArrayBufferView;

/** By file dtype: ONNX Runtime's name and array type. float16 is stored as bits. */
const elementTypes: Record<string, [type: string, elements: Elements]> = {
  F32: ['float32', Float32Array],
  F16: ['float16', Uint16Array],
  F64: ['float64', Float64Array],
  I64: ['int64', BigInt64Array],
  I32: ['int32', Int32Array],
  I16: ['int16', Int16Array],
  I8: ['int8', Int8Array],
  U64: ['uint64', BigUint64Array],
  U32: ['uint32', Uint32Array],
  U16: ['uint16', Uint16Array],
  U8: ['uint8', Uint8Array],
  BOOL: ['bool', Uint8Array],
};

/** One sample of one input, as bytes of a file. */
interface FeedSlice {
  file: OpenedModel;
  tensor: TensorInfo;
  begin: number;
  bytes: number;
  dims: readonly number[];
}

/** The input for a tensor, and the number in its name. */
function inputFor(inputs: readonly ModelInput[], file: OpenedModel, name: string) {
  const plain = formats.inputs[file.format].addsWeightSuffix ? name.replace(/\.weight$/, '') : name;
  const [, stem = plain, number = '-1'] = /^(.+)\.(\d+)$/.exec(plain) ?? [];
  for (const [candidate, place] of [
    [name, -1],
    [plain, -1],
    [stem, Number(number)],
  ] as const) {
    const input = inputs.find((known) => known.name === candidate);
    if (input) return { input, place };
  }
  const known = inputs
    .filter(({ optional }) => !optional)
    .map((input) => `${input.name} (${inputText(input)})`)
    .join(', ');
  throw failure('argument-invalid', name, `is not an input of the model; its inputs are ${known}`);
}

const fits = (dims: readonly number[], shape: ModelInput['shape']) =>
  !shape || (dims.length === shape.length && shape.every((size, i) => typeof size !== 'number' || size === dims[i]));

/**
 * How an array becomes samples: as one, along an additional axis, or along the first axis if the model fixes its rows.
 */
function cut(tensor: TensorInfo, { name, shape }: ModelInput): { count: number; dims: number[] } {
  const { shape: found } = tensor;
  const [first = 0, ...rest] = found;
  if (fits(found, shape)) return { count: 1, dims: found };
  if (shape && found.length === shape.length + 1 && fits(rest, shape)) return { count: first, dims: rest };
  const rows = shape?.[0];
  if (typeof rows === 'number' && rows > 0 && first % rows === 0 && fits([rows, ...rest], shape))
    return { count: first / rows, dims: [rows, ...rest] };
  const taken = inputText({ type: '', shape });
  throw failure('shape-mismatch', tensor.name, `is [${found.join(', ')}]; the input ${name} needs ${taken}`);
}

function checkType(tensor: TensorInfo, { name, type }: ModelInput): void {
  const [found] = elementTypes[tensor.dtype] ?? [];
  if (!found)
    throw failure(
      'dtype-unsupported',
      tensor.name,
      `holds ${tensor.dtype}, which the runtime does not accept as an input`,
    );
  if (type === '' || found === type) return;
  const advice = type === 'string' ? '' : `; convert it first, in NumPy with .astype("${type}")`;
  throw failure('dtype-unsupported', tensor.name, `holds ${found}; the input ${name} needs ${type}${advice}`);
}

function piecesOf(file: OpenedModel, tensor: TensorInfo, input: ModelInput): FeedSlice[] {
  checkType(tensor, input);
  const { count, dims } = cut(tensor, input);
  if (count === 0 || dims.includes(0)) throw failure('shape-mismatch', tensor.name, 'has no elements');
  if (count > mostSamples)
    throw failure('shape-mismatch', tensor.name, `holds ${count} samples; at most ${mostSamples} are possible`);
  const bytes = tensor.bytes / count;
  return Array.from({ length: count }, (_, i) => ({ file, tensor, begin: tensor.begin + i * bytes, bytes, dims }));
}

/** The samples of an opened file or list of arrays. */
function samplesOf(file: OpenedModel, inputs: readonly ModelInput[]): Record<string, FeedSlice>[] {
  const found = new Map<ModelInput, { place: number; pieces: FeedSlice[] }[]>();
  for (const tensor of file.tensors) {
    const { input, place } = inputFor(inputs, file, tensor.name);
    found.set(input, [...(found.get(input) ?? []), { place, pieces: piecesOf(file, tensor, input) }]);
  }
  const names = file.files.map(({ name }) => name).join(', ');
  const lists = inputs.flatMap((input): [string, FeedSlice[]][] => {
    const arrays = found.get(input);
    if (arrays) return [[input.name, arrays.sort((a, b) => a.place - b.place).flatMap(({ pieces }) => pieces)]];
    if (input.optional) return [];
    const detail = `the model needs this input (${inputText(input)}), and ${names} has no array of this name`;
    throw failure('argument-invalid', input.name, detail);
  });
  const count = Math.max(0, ...lists.map(([, pieces]) => pieces.length));
  for (const [name, { length }] of lists) {
    if (length === count || length === 1) continue;
    throw failure('shape-mismatch', name, `has ${length} samples in ${names}; another input has ${count}`);
  }
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(lists.map(([name, pieces]) => [name, pieces[i] ?? pieces[0]] as [string, FeedSlice])),
  );
}

async function tensorOf(Tensor: TensorClass, { file, tensor, begin, bytes, dims }: FeedSlice): Promise<unknown> {
  const source = file.weights[file.files.findIndex(({ name }) => name === tensor.file)];
  const [type, Elements] = elementTypes[tensor.dtype] ?? [];
  if (!source || !Elements) throw new RangeError('a checked tensor has a file and a type');
  return new Tensor(type, new Elements((await source.read(begin, bytes)).slice().buffer), dims);
}

/**
 * Inputs of an ONNX model from opened files, for `captureActivations`. Arrays are named like the inputs, or
 * `<input>.0`, `<input>.1` ... for several samples. An array with one more axis than its input, or a multiple of the
 * model's fixed number of rows, also has several samples. An input with a single sample is used with all samples of its
 * file.
 * @param runtime the module `onnxruntime-web` or `onnxruntime-node`
 * @param model an opened ONNX model
 * @param files opened .npz archives, safetensors files, or lists of .npy arrays; keep them open while feeds are read
 * @throws QuantizationError argument-invalid (an unknown array, an input without array), shape-mismatch,
 * dtype-unsupported,
 *   format-unsupported
 */
export function feedsOf(runtime: { Tensor: TensorClass }, model: Model, ...files: Model[]): FileFeeds {
  const inputs = modelInputs(model);
  const samples = files.flatMap((file) => samplesOf(opened(file), inputs));
  if (samples.length === 0) throw failure('argument-invalid', 'feeds', 'no file holds a sample');
  async function* read(): AsyncGenerator<Feed> {
    try {
      for (const sample of samples) {
        const feed: Feed = {};
        for (const [name, piece] of Object.entries(sample)) feed[name] = await tensorOf(runtime.Tensor, piece);
        yield feed;
      }
    } finally {
      await Promise.all(files.flatMap((file) => opened(file).weights.map((source) => source.close())));
    }
  }
  return { count: samples.length, [Symbol.asyncIterator]: read };
}

function opened(model: Model): OpenedModel {
  if (model instanceof OpenedModel) return model;
  throw failure('argument-invalid', 'model', 'was not opened by this library');
}

/**
 * The declared inputs of an opened ONNX model, including those with a default.
 * @throws QuantizationError format-unsupported if the model is not ONNX
 */
export function modelInputs(model: Model): ModelInput[] {
  return inputsOf(opened(model));
}
