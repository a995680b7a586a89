// Sessions of ONNX Runtime, which the caller gives, on opened models.

import { failure, textOf } from '../api/errors.js';
import type { OpenedModel } from './model.js';

/** The subset of ONNX Runtime's tensor used here. */
export interface RuntimeTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: unknown;
  /** Fetches data from another device. */
  getData?(releaseData?: boolean): Promise<unknown>;
  dispose?(): void;
}

/** The subset of ONNX Runtime's session used here. */
export interface RuntimeSession {
  run(feeds: Record<string, RuntimeTensor>, fetches: readonly string[]): Promise<Record<string, RuntimeTensor>>;
  release(): Promise<void>;
  /** Milliseconds of so many runs together, of a session in another thread: how long messages take does not count. */
  timed?(feeds: Record<string, RuntimeTensor>, fetches: readonly string[], runs: number): Promise<number>;
}

/** The subset of `onnxruntime-web` and `onnxruntime-node` used here. */
export interface Runtime {
  // biome-ignore lint/suspicious/noExplicitAny: sessions of the two modules have types of their own, options too
  InferenceSession: { create(model: Uint8Array, options?: any): Promise<any> };
}

/** The subset of ONNX Runtime's class `Tensor` used here. */
export interface TensorClass {
  // biome-ignore lint/suspicious/noExplicitAny: the class has an overload for every type of elements
  new (type: any, data: any, dims: readonly number[]): unknown;
}

/** Inputs of the model by name: tensors of the runtime that was given. */
// biome-ignore lint/suspicious/noExplicitAny: the tensors of the two modules have types of their own
export type Feed = Record<string, any>;

/** Re-readable feeds, or a function that makes them. */
export type Feeds = Iterable<Feed> | AsyncIterable<Feed> | (() => Iterable<Feed> | AsyncIterable<Feed>);

/** Errors: argument-invalid unless it is a module that makes sessions. */
export function requireRuntime(runtime: unknown): asserts runtime is Runtime {
  if (typeof (runtime as Runtime | undefined)?.InferenceSession?.create !== 'function')
    throw failure('argument-invalid', 'runtime', 'is not the module onnxruntime-web or onnxruntime-node');
}

/** The model with more outputs, as one array, and its external data files. */
async function bytesOf(model: OpenedModel, outputs: readonly string[], locations: readonly string[]) {
  const [source, ...external] = model.weights;
  if (!source) throw new RangeError('a model has a file');
  const added = outputs.length > 0 ? model.addedOutputs(outputs) : new Uint8Array();
  const bytes = new Uint8Array(source.size + added.length);
  const step = 1 << 24;
  for (let at = 0; at < source.size; at += step) bytes.set(await source.read(at, Math.min(step, source.size - at)), at);
  bytes.set(added, source.size);
  const externalData: { path: string; data: Uint8Array }[] = [];
  for (const [i, file] of external.entries())
    externalData.push({ path: locations[i] ?? file.name, data: await file.read(0, file.size) });
  return { bytes, externalData };
}

/** `outputs`: values of the graph that become outputs. Errors: source-invalid. */
export async function createSession(
  runtime: Runtime,
  model: OpenedModel,
  outputs: readonly string[],
  locations: readonly string[],
  options: object = {},
): Promise<RuntimeSession> {
  const { bytes, externalData } = await bytesOf(model, outputs, locations);
  const given = 'externalData' in options || externalData.length === 0 ? options : { ...options, externalData };
  try {
    return await runtime.InferenceSession.create(bytes, given);
  } catch (error) {
    throw failure('source-invalid', model.name, `ONNX Runtime cannot load the model: ${textOf(error)}`, error);
  }
}

/** One run. Errors: argument-invalid naming the feed. */
export async function ran(session: RuntimeSession, feed: Feed, names: readonly string[], number: number) {
  try {
    return await session.run(feed, names);
  } catch (error) {
    throw failure(
      'argument-invalid',
      `feed ${number}`,
      `ONNX Runtime cannot run the model on it: ${textOf(error)}`,
      error,
    );
  }
}
