/// <reference lib="esnext.disposable" preserve="true" />
// The entry point.

import type { CompareOptions, Distribution, DistributionOptions } from './compare_types.js';
import type { Curve, CurveOptions } from './curve_types.js';
import type { Diagnostic } from './diagnostic_types.js';
import type { LanguageModel } from './language_model_types.js';
import type { Model } from './model_types.js';
import type { Config, Dialect, Preset, PresetEdits, PresetName, QuantConfig } from './parsed_config_types.js';
import type { Plan } from './plan_types.js';
import type { Comparison, RunReport, TensorReport } from './report_types.js';
import type { MergeOptions, PlanOptions, PreviewOptions, QuantizeModelOptions } from './run_types.js';
import type { OpenOptions, Source } from './source_types.js';
import type { Observer, QuantizationSpec, QuantizedTensor, TensorInput } from './tensor_types.js';

/** Options of {@link createQuantizer}. */
export interface QuantizerOptions {
  /** Workers; default min(hardwareConcurrency, 8); 0 = run in this thread. */
  threads?: number;
  /** URL of wasmquant.wasm; default next to the library. */
  wasmUrl?: string | URL;
  /** A compiled module, for hosts that cannot compile at run time. */
  wasmModule?: WebAssembly.Module;
  /** URL of the worker script (`wasmquant/worker`), for bundlers that move it; default next to the library. */
  workerUrl?: string | URL;
  /** Milliseconds of work, between whose steps this thread answers, before workers start: a run that is shorter needs none. Default 0. */
  workersAfterMs?: number;
  /** Memory for all workers in bytes, at least 64 MiB; default 1 GiB in Node, 512 MiB in pages. The runtime's own memory is not included. */
  memoryBudgetBytes?: number;
}

/** Build information. */
export interface LibraryVersion {
  /** npm package version. */
  library: string;
  /** Compiler of wasmquant.wasm. */
  compiler: string;
}

/** A config in another dialect. */
export interface ConvertedConfig {
  /** The config, ready to be written as JSON. */
  config: object;
  /** What the dialect cannot express or expresses with other numbers, with places in the original config. */
  losses: Diagnostic[];
}

/** The entry point; see {@link createQuantizer}. */
export interface Quantizer extends AsyncDisposable {
  /** Versions of the library and of its module's compiler. */
  version: LibraryVersion;
  /** All presets. */
  presets(): Preset[];
  /**
   * A preset, or a config of your own, with changes, for `plan` and `quantizeModel`: what `--exclude`, `--layer`, `--layer-type` and
   * `--best` of the command line do.
   * @throws QuantizationError `argument-invalid` for names of no preset, and changes that the config cannot have
   */
  presetConfig(preset: PresetName | (string & {}) | object, edits?: PresetEdits): Record<string, unknown>;
  /** All problems in a config; never throws. */
  checkConfig(config: Config, options?: { dialect?: Dialect | 'auto' }): Diagnostic[];
  /** @throws QuantizationError `config-invalid` with `diagnostics`. */
  parseConfig(config: Config, options?: { dialect?: Dialect | 'auto' }): QuantConfig;
  /** A config in another dialect. @throws QuantizationError `config-invalid` if it cannot express any of it */
  convertConfig(config: Config, to: Dialect): ConvertedConfig;
  /**
   * Quantizes one tensor in this thread to the codes a file would contain (zero point added before rounding). Two specs
   * are two stages: the second quantizes the output of the first, or with `is_scale_quant` its scales.
   */
  quantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): QuantizedTensor;
  /** Values of a quantized tensor. */
  dequantize(quantized: QuantizedTensor): Float32Array;
  /** Quantizes and dequantizes, adding the zero point after rounding, as training-time fake quantization does. */
  fakeQuantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): Float32Array;
  /** An observer for tensors in memory. */
  createObserver(spec: QuantizationSpec): Observer;
  /** Reads headers, no weights. @throws QuantizationError `source-invalid`, `format-unknown`, `file-invalid`, ... */
  open(source: Source | Source[], options?: OpenOptions): Promise<Model>;
  /**
   * What a run would write, before any weight is read. `config` is a config, its JSON text, or a preset name. Models with more than
   * 300 tensors are planned by a worker, so that a page stays responsive.
   * @throws QuantizationError `config-invalid`, `format-unsupported`, ...
   */
  plan(model: Model, config: Config, options?: PlanOptions): Promise<Plan>;
  /**
   * Quantizes a model into `target`. @throws QuantizationError those of `plan`, `target-exists`, `target-invalid`,
   * `write-failed`, `value-not-finite`, `value-overflow`
   */
  quantizeModel(model: Model, config: Config, options: QuantizeModelOptions): Promise<RunReport>;
  /**
   * Joins the parts of a run (`quantizeModel` with `shards`) in a folder (a path, in Node) to a model with the bytes of
   * a whole run; needs neither the original model nor the config. Resolves to the whole run's report.
   * @throws QuantizationError `source-invalid` (no parts, parts or shards missing), `file-truncated`, `file-invalid`
   * (parts of different plans, another header), `target-exists`, each before anything is moved; `write-failed`;
   * `target-invalid` outside Node
   */
  mergeShards(folder: string, options?: MergeOptions): Promise<RunReport>;
  /**
   * Error of every weight of `quantized` against `reference`, in any formats. With `runtime`, the module `onnxruntime-web` or
   * `onnxruntime-node`, also of the outputs of two ONNX models: `Comparison.outputs`.
   * @throws QuantizationError with `runtime`: `format-unsupported` (not ONNX, an input that cannot be made up),
   * `argument-invalid` (feeds that the model does not take), `source-invalid` (ONNX Runtime cannot load one of the models)
   */
  compare(reference: Model, quantized: Model, options?: CompareOptions): Promise<Comparison>;
  /**
   * Histograms and per-channel error of one weight in a model and in its quantized output.
   * @throws QuantizationError `tensor-missing` if either lacks the weight
   */
  distribution(
    reference: Model,
    quantized: Model,
    tensor: string,
    options?: DistributionOptions,
  ): Promise<Distribution>;
  /**
   * Quantizes some tensors as in a run, only by rounding if the config has calibrated algorithms, and writes nothing.
   * @throws QuantizationError those of `plan`, `tensor-missing`
   */
  preview(model: Model, config: Config, tensors: readonly string[], options?: PreviewOptions): Promise<TensorReport[]>;
  /**
   * Size of the file against loss for the schemes that a runtime reads, each written to a temporary place and measured there: bits per
   * byte of `text`, error of an ONNX model's outputs, else error of the weights. `schemes` and `target` choose.
   * @throws QuantizationError those of `plan`, `quantizeModel`, `evaluate`; `argument-invalid` for feeds that the model does not take
   */
  curve(model: Model, options?: CurveOptions): Promise<Curve>;
  /**
   * A model as a language model. `source`: folder a GGUF model was made from, for its config.json and tokenizer.json.
   * @throws QuantizationError `argument-invalid` for models not opened by this library
   */
  languageModel(model: Model, options?: { source?: Model }): LanguageModel;
  /** Ends runs, which reject, and workers. `await using` does it, too. */
  close(): Promise<void>;
}
