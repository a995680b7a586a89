// `wasmquant/onnxruntime` in browsers and web workers: activations of ONNX models to calibrate with.

import type { CapturedActivations, Model, Source } from '../api/types.js';
import { createQuantizer } from '../index.js';
import { type CaptureOptions, capturer, type Feeds, type Runtime } from './capture.js';

export type { ActivationBatch, CapturedActivations } from '../api/types.js';
export type { ModelInput } from '../model/onnx_inputs.js';
export type { CaptureOptions, Feed, Feeds, Runtime, RuntimeSession, RuntimeTensor } from './capture.js';
export { type FileFeeds, feedsOf, modelInputs, type TensorClass } from './feeds.js';

/**
 * What goes into the layers of an ONNX model and comes out of them when ONNX Runtime runs it on `feeds`; give it to
 * `quantizeModel` as `calibration`. Nothing runs before it is read, and then only what is asked for. The model is in memory
 * once more while the session is made, files with external data with it.
 * @param runtime the module `onnxruntime-web` or `onnxruntime-node`
 * @param model opened, or what `open` of a quantizer takes
 * @param feeds inputs of the model by name, one record a run; observers that see data twice read them twice
 * @throws QuantizationError while it is read: format-unsupported (not ONNX), argument-invalid (a layer inside a nested graph; a
 *   feed that the model does not take), source-invalid (the runtime refuses the model), dtype-unsupported
 */
export const captureActivations: (
  runtime: Runtime,
  model: Model | Source,
  feeds: Feeds,
  options?: CaptureOptions,
) => CapturedActivations = capturer(createQuantizer);
