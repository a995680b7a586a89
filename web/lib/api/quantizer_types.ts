// The entry point.

import type { Diagnostic } from './diagnostic_types.js';
import type { Distribution, DistributionOptions } from './distribution_types.js';
import type { InputFormat } from './formats.js';
import type { LanguageModel } from './language_model_types.js';
import type { Model } from './model_types.js';
import type { Dialect, Preset, QuantConfig } from './parsed_config_types.js';
import type { Plan, Report, TensorReport } from './plan_types.js';
import type { Progress } from './progress_types.js';
import type { PlanOptions, QuantizeModelOptions } from './run_types.js';
import type { Source } from './source_types.js';
import type { Observer, QuantizationSpec, QuantizedTensor, TensorInput } from './tensor_types.js';

/** Options of {@link createQuantizer}. */
export interface QuantizerOptions {
  /** Workers; default min(hardwareConcurrency, 8); 0 = run in this thread. */
  threads?: number;
  /** Where wasmquant.wasm is; default beside the library. */
  wasmUrl?: string | URL;
  /** A compiled module, for hosts that cannot compile at run time. */
  wasmModule?: WebAssembly.Module;
  /** Where the worker script (`wasmquant/worker`) is, for bundlers that move it; default beside the library. */
  workerUrl?: string | URL;
  /** Memory for all workers together, in bytes, at least 64 MiB; default 512 MiB. It bounds what a run adds to the bare host. */
  memoryBudgetBytes?: number;
}

/** What the library was built from. */
export interface LibraryVersion {
  /** Version of the npm package. */
  library: string;
  /** Compiler of wasmquant.wasm. */
  compiler: string;
}

/** A config in another dialect. */
export interface ConvertedConfig {
  /** The config, ready to be written as JSON. */
  config: object;
  /** What the dialect cannot express, or expresses with other numbers, each at its place in the original config. */
  losses: Diagnostic[];
}

/** The entry point; see {@link createQuantizer}. */
export interface Quantizer extends AsyncDisposable {
  /** Versions of the library and of the compiler of its module. */
  version: LibraryVersion;
  /** All presets. */
  presets(): Preset[];
  /** All problems at once; never throws. */
  checkConfig(config: string | object, options?: { dialect?: Dialect | 'auto' }): Diagnostic[];
  /** @throws QuantizationError `config-invalid` with `diagnostics`. */
  parseConfig(config: string | object, options?: { dialect?: Dialect | 'auto' }): QuantConfig;
  /**
   * A config in the words of another dialect. @throws QuantizationError `config-invalid` when nothing of it can be said there.
   */
  convertConfig(config: string | object, to: Dialect): ConvertedConfig;
  /**
   * One tensor, in this thread. Codes are those a file would hold (zero point added before rounding). A list of two specs is two
   * stages: the second quantizes the output of the first, or with `is_scale_quant` its scales.
   */
  quantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): QuantizedTensor;
  /** Values of a quantized tensor. */
  dequantize(quantized: QuantizedTensor): Float32Array;
  /** Quantize and dequantize, zero point added after rounding, as training-time fake quantization does. */
  fakeQuantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): Float32Array;
  /** An observer for tensors in memory. */
  createObserver(spec: QuantizationSpec): Observer;
  /**
   * Opens a model: reads headers, no weights. @throws QuantizationError `source-invalid`, `format-unknown`,
   * `file-invalid`, ...
   */
  open(source: Source | Source[], options?: { format?: InputFormat }): Promise<Model>;
  /** `config` is a config, its JSON text, or a preset name. */
  plan(model: Model, config: string | object, options?: PlanOptions): Plan;
  /**
   * Quantizes a model into `target`. @throws QuantizationError those of `plan`, `target-exists`, `target-invalid`,
   * `write-failed`, `value-not-finite`, `value-overflow`
   */
  quantizeModel(model: Model, config: string | object, options: QuantizeModelOptions): Promise<Report>;
  /**
   * Makes a model of a folder (a path, in Node) that all parts of a run (`quantizeModel` with `shards`) were written to: the
   * files, with the bytes, of a whole run. Neither the original model nor the config is needed. Resolves to the report of the
   * whole. `overwrite`: small files that stand there already, such as a tokenizer.json, are replaced. Default false.
   * @throws QuantizationError `source-invalid` (no parts, parts or shards missing), `file-truncated`, `file-invalid` (parts of
   * different plans, another header), `target-exists`, and nothing is moved; `write-failed`; `target-invalid` outside Node
   */
  mergeShards(folder: string, options?: { overwrite?: boolean }): Promise<Report>;
  /** Error of every weight of `quantized` against `reference`, whatever their formats. */
  compare(
    reference: Model,
    quantized: Model,
    options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
  ): Promise<Report>;
  /**
   * Where the values of one weight lie, in the model and in what a run made of it, and the error of each channel.
   * @throws QuantizationError `tensor-missing` where the two have no such weight in common
   */
  distribution(
    reference: Model,
    quantized: Model,
    tensor: string,
    options?: DistributionOptions,
  ): Promise<Distribution>;
  /**
   * What a config would do to some tensors: quantized as in a run, by rounding alone where it has calibrated algorithms;
   * nothing is written. @throws QuantizationError those of `plan`, `tensor-missing`
   */
  trial(
    model: Model,
    config: string | object,
    tensors: readonly string[],
    options?: PlanOptions & { signal?: AbortSignal },
  ): Promise<TensorReport[]>;
  /**
   * A model as a language model: run, measured, calibrated. `source`: the folder that a GGUF model was made from, whose config.json
   * and tokenizer.json then count. @throws QuantizationError `argument-invalid` for models that this library did not open
   */
  languageModel(model: Model, options?: { source?: Model }): LanguageModel;
}
