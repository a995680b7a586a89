// Activations of an ONNX model from ONNX Runtime: makes inputs and outputs of layers graph outputs; one run per feed.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { ActivationBatch, CapturedActivations, Model, Quantizer, Source } from '../api/types.js';
import { arrayName } from '../api/values.js';
import { isIterable, isReadOnce } from '../calibration/activations.js';
import { OpenedModel } from '../model/model.js';
import { type LayerValues, layerValuesOf } from '../model/onnx_inputs.js';
import {
  createSession,
  type Feed,
  type Feeds,
  type Runtime,
  type RuntimeTensor,
  ran,
  requireRuntime,
} from '../model/onnx_session.js';
import { type FeedMask, maskOf, withoutPadding } from './padding.js';

export interface CaptureOptions {
  /** For `InferenceSession.create`: executionProviders, … External data files are added. */
  sessionOptions?: object;
  /** Maximum number of values in memory at once; more need further runs of the same feed. Default: all. */
  valuesPerRun?: number;
  signal?: AbortSignal;
}

type Wanted = Pick<ActivationBatch, 'layer' | 'role'>;

/** Graph values, with their roles in layers. */
type Values = Map<string, Wanted[]>;

const roles = ['input', 'output'] as const;

/** Errors: argument-invalid naming a wanted layer without values in the graph. */
function valuesOf({ layers }: LayerValues, wanted: readonly Wanted[] | null): Values {
  const values: Values = new Map();
  const add = (name: string, use: Wanted) => values.set(name, [...(values.get(name) ?? []), use]);
  if (!wanted) {
    for (const row of layers.filter(({ nested }) => !nested))
      for (const role of roles) add(row[role], { layer: row.layer, role });
    return values;
  }
  for (const { layer, role } of wanted) {
    const rows = layers.filter((row) => row.layer === layer);
    if (rows.length === 0)
      throw failure('argument-invalid', layer, 'no MatMul, Gemm or Conv of the model is this layer');
    if (rows.some(({ nested }) => nested)) {
      const detail = `is inside a control-flow subgraph (If, Loop, Scan), so its ${role} cannot be observed; exclude the layer, or set is_dynamic`;
      throw failure('argument-invalid', layer, detail);
    }
    if (role !== 'input' && role !== 'output')
      throw failure(
        'argument-invalid',
        layer,
        `has no ${role}: of ONNX models, the inputs and outputs of layers can be observed`,
      );
    for (const row of rows) add(row[role], { layer, role });
  }
  return values;
}

/** A tensor's data for calibration, without padding, for each use. Errors: dtype-unsupported. */
async function* batchesOf(tensor: RuntimeTensor, name: string, uses: readonly Wanted[], mask: FeedMask | null) {
  for (const use of uses) {
    const batch = withoutPadding(await batchOf(tensor, name, use), mask);
    if (batch) yield batch;
  }
}

async function batchOf(tensor: RuntimeTensor, name: string, use: Wanted): Promise<ActivationBatch> {
  const shape = [...tensor.dims];
  const data = tensor.getData ? await tensor.getData() : tensor.data;
  if (tensor.type === 'float32' && arrayName(data) === 'Float32Array')
    return { ...use, data: data as Float32Array, dtype: 'F32', shape };
  if (tensor.type === 'float16' && ArrayBuffer.isView(data)) {
    const bits = new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2);
    return { ...use, data: bits, dtype: 'F16', shape };
  }
  throw failure('dtype-unsupported', name, `is a tensor of ${tensor.type}; activations are float32 or float16`);
}

async function* captured(
  runtime: Runtime,
  model: OpenedModel,
  feeds: Iterable<Feed> | AsyncIterable<Feed>,
  { sessionOptions, valuesPerRun = Number.POSITIVE_INFINITY, signal }: CaptureOptions,
  wanted: readonly Wanted[] | null,
): AsyncGenerator<ActivationBatch> {
  const known = layerValuesOf(model);
  const inputs = known.inputs.map(({ name }) => name);
  const values = valuesOf(known, wanted);
  const fed = inputs.filter((name) => values.has(name));
  const fetched = [...values.keys()].filter((name) => !inputs.includes(name));
  const added = fetched.filter((name) => !known.outputs.includes(name));
  signal?.throwIfAborted();
  const session = await createSession(runtime, model, added, known.locations, sessionOptions);
  try {
    let number = 0;
    for await (const feed of feeds) {
      const mask = maskOf(feed, number);
      for (const name of fed) {
        const tensor = feed[name] as RuntimeTensor | undefined;
        if (!tensor) throw failure('argument-invalid', name, `feed ${number} has no input of this name`);
        yield* batchesOf(tensor, name, values.get(name) ?? [], mask);
      }
      for (let first = 0; first < fetched.length; first += valuesPerRun) {
        signal?.throwIfAborted();
        const names = fetched.slice(first, first + valuesPerRun);
        const outputs = await ran(session, feed, names, number);
        for (const name of names) {
          const tensor = outputs[name];
          if (!tensor) throw failure('state-invalid', name, 'was not returned by the runtime');
          yield* batchesOf(tensor, name, values.get(name) ?? [], mask);
          tensor.dispose?.();
          delete outputs[name];
        }
      }
      number += 1;
    }
  } finally {
    await session.release();
  }
}

/** Makes the host's `captureActivations`. `create`: a quantizer that opens models given as sources. */
export function capturer(create: (options: { threads: number }) => Promise<Quantizer>) {
  return (runtime: Runtime, model: Model | Source, feeds: Feeds, options: CaptureOptions = {}): CapturedActivations => {
    requireRuntime(runtime);
    if (typeof feeds !== 'function' && !isIterable(feeds))
      throw failure('argument-invalid', 'feeds', 'is neither an iterable nor a function that makes one');
    const own = check(options, { sessionOptions: 'object', valuesPerRun: 'number', signal: 'signal' }, 'options');
    const { valuesPerRun = 1 } = own;
    if (!(valuesPerRun >= 1)) throw failure('argument-invalid', 'valuesPerRun', `${valuesPerRun} is less than 1`);
    let uses = 0;
    async function* run(wanted: readonly Wanted[] | null): AsyncGenerator<ActivationBatch> {
      const these = typeof feeds === 'function' ? feeds() : feeds;
      if (uses++ > 0 && these === feeds && isReadOnce(these)) {
        const detail = 'are read a second time, and this iterator is over; give an array, or a function that makes it';
        throw failure('argument-invalid', 'feeds', detail);
      }
      if (model instanceof OpenedModel) return yield* captured(runtime, model, these, own, wanted);
      const quantizer = await create({ threads: 0 });
      try {
        const opened = await quantizer.open(model as Source);
        try {
          yield* captured(runtime, opened as OpenedModel, these, own, wanted);
        } finally {
          await opened.close();
        }
      } finally {
        await quantizer[Symbol.asyncDispose]();
      }
    }
    const iterable = (wanted: readonly Wanted[] | null) => ({ [Symbol.asyncIterator]: () => run(wanted) });
    return { ...iterable(null), only: iterable };
  };
}
