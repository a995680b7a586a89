// Time of a run in ONNX Runtime, of two opened models.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { Model, Speed } from '../api/types.js';
import { OpenedModel } from '../model/model.js';
import { type Feed, type Feeds, type Runtime, requireRuntime } from '../model/onnx_session.js';
import { speedOf, turnTimesOf } from '../model/onnx_speed.js';

/** Options of `measureSpeed`. */
export interface SpeedOptions {
  /** For `InferenceSession.create`: executionProviders, … Default: one thread, whose time other programs change least. */
  sessionOptions?: object;
  /** Cancels. */
  signal?: AbortSignal;
}

/**
 * How long a run of an ONNX model takes in ONNX Runtime on this machine, before and after quantization. Both run in turns, so that the
 * ratio of their times holds on a busy machine, too. Takes some seconds, and one more copy of both in memory.
 * @param runtime the module `onnxruntime-web` or `onnxruntime-node`
 * @param original an opened ONNX model
 * @param quantized the same, quantized and opened
 * @param feeds inputs by name, one record per run, which are all kept; their sizes decide the times
 * @throws QuantizationError format-unsupported (not ONNX), argument-invalid (no feeds, or ones that do not fit), source-invalid (the
 *   runtime rejects a model)
 */
export async function measureSpeed(
  runtime: Runtime,
  original: Model,
  quantized: Model,
  feeds: Feeds,
  options: SpeedOptions = {},
): Promise<Speed> {
  requireRuntime(runtime);
  const own = check(options, { sessionOptions: 'object', signal: 'signal' }, 'options');
  const models = [original, quantized].map((model, i) => {
    if (model instanceof OpenedModel) return model;
    throw failure('argument-invalid', i === 0 ? 'original' : 'quantized', 'was not opened by this library');
  }) as [OpenedModel, OpenedModel];
  const given: Feed[] = [];
  for await (const feed of typeof feeds === 'function' ? feeds() : feeds) given.push(feed);
  if (given.length === 0) throw failure('argument-invalid', 'feeds', 'the list is empty; give at least one feed');
  return speedOf(await turnTimesOf(runtime, models, given, own));
}
