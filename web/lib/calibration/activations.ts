// Activations for static inputs and outputs, from the caller, a safetensors file, or the built-in forward pass.

import { failure, QuantizationError } from '../api/errors.js';
import type { ActivationBatch, ActivationRole, CapturedActivations, TensorInfo } from '../api/types.js';
import { tagOf } from '../api/values.js';
import type { FoundActivations } from '../engine/forward_module.js';
import type { Instance } from '../engine/instance.js';
import { elementsOf, readTensor } from '../engine/tensor.js';
import { OpenedModel } from '../model/model.js';
import type { ForwardBatch } from '../plan/forward_plan.js';
import { type RunResources, runOne } from '../pool/run_resources.js';

/** Elements shown to an observer at a time. */
const pieceElements = 1 << 20;
const elementBytes: Record<string, number> = { F32: 4, F16: 2, BF16: 2 };
const roles = ['input', 'output', 'key', 'value'] as const;
const tensorName = new RegExp(`^(.+)\\.(${roles.join('|')})(?:\\.(\\d+))?$`);

interface Batch {
  layer: string;
  role: ActivationRole;
  dtype: string;
  shape: readonly number[];
  read(first: number, count: number): ArrayBufferView | Promise<ArrayBufferView>;
}

export type ActivationSource =
  | Iterable<ActivationBatch>
  | AsyncIterable<ActivationBatch>
  | CapturedActivations
  | OpenedModel;

/** Whether a file contains activations: tensors named `<layer>.input` or `<layer>.output`, with an optional number. */
export const holdsActivations = (file: OpenedModel) => file.tensors.some(({ name }) => tensorName.test(name));

export const isIterable = (value: unknown): value is Iterable<ActivationBatch> | AsyncIterable<ActivationBatch> =>
  typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);

function batchOf(given: ActivationBatch, number: number): Batch {
  const { layer, role } = given ?? {};
  if (typeof layer !== 'string' || !roles.includes(role)) {
    const detail = `batch ${number} is not { layer, role: ${roles.map((role) => `'${role}'`).join(' or ')}, data, shape }`;
    throw failure('argument-invalid', 'calibration', detail);
  }
  try {
    const { dtype, bytes, elements, shape } = readTensor(given);
    const size = bytes.length / Math.max(1, elements);
    return { layer, role, dtype, shape, read: (first, count) => bytes.subarray(first * size, (first + count) * size) };
  } catch (error) {
    if (!(error instanceof QuantizationError)) throw error;
    throw failure(error.code, `${layer}.${role}`, `batch ${number} of calibration, ${error.message}`);
  }
}

function batchOfTensor(file: OpenedModel, tensor: TensorInfo, layer: string, role: Batch['role']): Batch {
  const source = file.weights[file.files.findIndex(({ name }) => name === tensor.file)];
  const bytes = elementBytes[tensor.dtype];
  if (!source || bytes === undefined)
    throw failure('dtype-unsupported', tensor.name, `holds ${tensor.dtype}; activations are F32, F16 or BF16`);
  const read = (first: number, count: number) => source.read(tensor.begin + first * bytes, count * bytes);
  return { layer, role, dtype: tensor.dtype, shape: tensor.shape, read };
}

/** Batches without a number first, then by number. */
async function* batchesOfFile(file: OpenedModel): AsyncGenerator<Batch> {
  const named = file.tensors.map((tensor) => {
    const [, layer, role, number = '-1'] = tensorName.exec(tensor.name) ?? [];
    if (layer === undefined) {
      const detail =
        'is not named <layer>.input or <layer>.output, nor <attention>.key or .value, as all tensors of a file of activations are';
      throw failure('argument-invalid', tensor.name, detail);
    }
    return { tensor, layer, role: role as Batch['role'], number: Number(number) };
  });
  named.sort((a, b) => a.number - b.number);
  try {
    for (const { tensor, layer, role } of named) yield batchOfTensor(file, tensor, layer, role);
  } finally {
    await Promise.all(file.weights.map((source) => source.close()));
  }
}

async function* batchesOf(source: ActivationSource): AsyncGenerator<Batch> {
  if (source instanceof OpenedModel) return yield* batchesOfFile(source);
  let number = 0;
  for await (const given of source) yield batchOf(given, number++);
}

/** Generators and streams can be read only once. */
export function isReadOnce(source: Iterable<unknown> | AsyncIterable<unknown> | OpenedModel): boolean {
  if (source instanceof OpenedModel) return false;
  if (tagOf(source) === 'ReadableStream') return true;
  const iterator: unknown = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  return iterator === source;
}

const parsed = (requests: string) => JSON.parse(requests) as Pick<ActivationBatch, 'layer' | 'role'>[];

function unknownLayer(layer: string, layers: Set<string>, requests: string): QuantizationError {
  const last = layer.split('.').at(-1) ?? '';
  const alike = [...layers].filter((name) => name.split('.').at(-1)?.startsWith(last));
  const requested = new Set(parsed(requests).map((request) => request.layer)); // once for each role
  const shown = (alike.length > 0 ? alike : [...requested]).slice(0, 4);
  return failure('argument-invalid', layer, `the model has no layer of this name; it has ${shown.join(', ')}`);
}

/** Shows batches to the observers of a plan. Errors, each naming the layer: argument-invalid (unknown layer, or no
 * data), shape-mismatch, value-not-finite, dtype-unsupported. */
export async function observeActivations(
  instance: Instance,
  model: OpenedModel,
  requests: string,
  given: ActivationSource,
  signal: AbortSignal | undefined,
): Promise<FoundActivations> {
  const source = 'only' in given ? given.only(parsed(requests)) : given;
  const layers = new Set(model.tensors.map(({ layer }) => layer));
  return instance.withObject(
    (module) => module.ActivationObserver.make(requests),
    async (observer) => {
      const because = instance.run(() => observer.secondPass());
      if (because !== '' && isReadOnce(source)) {
        const detail = `${because} sees the data twice, and this iterator can be read once; give an array, an object whose [Symbol.asyncIterator]() starts again, or a safetensors file, or use a min-max observer`;
        throw failure('argument-invalid', 'calibration', detail);
      }
      do {
        for await (const { layer, role, dtype, shape, read } of batchesOf(source)) {
          signal?.throwIfAborted();
          if (!layers.has(layer)) throw unknownLayer(layer, layers, requests);
          const count = elementsOf(shape);
          if (!instance.flag(() => observer.begin(layer, role, JSON.stringify(shape)))) continue;
          for (let first = 0; first < count; first += pieceElements) {
            const elements = Math.min(pieceElements, count - first);
            const values = await read(first, elements);
            signal?.throwIfAborted();
            instance.withBytes(values, (at) => instance.done(() => observer.update(at, dtype, elements)));
          }
        }
      } while (instance.flag(() => observer.nextPass()));
      return instance.call<FoundActivations>(() => observer.finish());
    },
  );
}

/** The same for linear-layer inputs from the forward pass on tokens, in a worker. */
export async function observeInputs(
  resources: RunResources,
  model: OpenedModel,
  requests: string,
  { tokens, plan: { steps: all, architecture, work } }: ForwardBatch,
  signal: AbortSignal | undefined,
): Promise<FoundActivations> {
  const asked = parsed(requests);
  const output = asked.find(({ role, layer }) => role === 'output' && !/\.self_attn\.[kv]_proj$/.test(layer));
  if (output) {
    const detail = `tokens give the inputs of layers, keys and values; give activations for the outputs of ${output.layer}`;
    throw failure('argument-invalid', 'calibration', detail);
  }
  const needsHead = asked.some(({ layer }) => /(^|\.)lm_head$/.test(layer));
  const steps = needsHead ? all : all.slice(0, -1);
  const part = {
    kind: 'observe-inputs' as const,
    architecture,
    requests,
    steps,
    reads: 0,
    tokens: tokens.ids,
    lengths: tokens.lengths,
  };
  const bytes = steps.reduce((sum, step) => sum + step.tensors.reduce((all, tensor) => all + tensor.bytes, 0), 0);
  return runOne(
    resources,
    { models: [model], work: [work] },
    { label: 'inputs of linear layers', bytes, part },
    signal,
  );
}
