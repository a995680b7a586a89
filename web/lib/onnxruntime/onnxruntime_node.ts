// `wasmquant/onnxruntime` in Node, Bun and Deno: ONNX activations for calibration, and the time of a run.

import type { CapturedActivations, Model, Source } from '../api/types.js';
import type { Feeds, Runtime } from '../model/onnx_session.js';
import { createQuantizer } from '../node.js';
import { type CaptureOptions, capturer } from './capture.js';

export type { ActivationBatch, CapturedActivations, Speed, Spread } from '../api/types.js';
export { type FileFeeds, feedsOf, modelInputs } from '../model/array_feeds.js';
export type { ModelInput } from '../model/onnx_inputs.js';
export type { Feed, Feeds, Runtime, RuntimeSession, RuntimeTensor, TensorClass } from '../model/onnx_session.js';
export type { CaptureOptions } from './capture.js';
export { measureSpeed, type SpeedOptions } from './speed.js';

/**
 * Inputs and outputs of an ONNX model's layers when ONNX Runtime runs it on `feeds`, for `calibration` of
 * `quantizeModel`. Runs lazily, and only for requested layers. Creating the session takes a second copy of the model in
 * memory, including external data.
 * @param runtime the module `onnxruntime-web` or `onnxruntime-node`
 * @param model opened, or a source for a quantizer's `open`
 * @param feeds inputs of the model by name, one record per run; observers with two passes read them twice
 * @throws QuantizationError while being read: format-unsupported (not ONNX), argument-invalid (a layer in a subgraph;
 *   an unknown feed), source-invalid (the runtime rejects the model), dtype-unsupported
 */
export const captureActivations: (
  runtime: Runtime,
  model: Model | Source,
  feeds: Feeds,
  options?: CaptureOptions,
) => CapturedActivations = capturer(createQuantizer);
