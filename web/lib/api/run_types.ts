// Options of plans and runs.

import type { Calibration } from './calibration_types.js';
import type { OutputFormat } from './formats.js';
import type { Model } from './model_types.js';
import type { Config } from './parsed_config_types.js';
import type { Progress } from './progress_types.js';
import type { RunReport, ShardPart } from './report_types.js';
import type { Target } from './source_types.js';

/** Options of ONNX outputs. The config decides which operators read the weights, see the guide "Formats". */
export interface OnnxOptions {
  /**
   * DequantizeLinear before every quantized weight (QDQ), no MatMulNBits or integer operators. ONNX Runtime's default session then
   * rounds the inputs of MatMul to 8 bits, unless its option session.qdq_matmulnbits_accuracy_level is "0". Default false.
   */
  qdq?: boolean;
  /**
   * Compute type of MatMulNBits: 1 float32, 2 float16, 3 bfloat16, 4 int8, which rounds its inputs; with any of them weights of 8
   * bits are in MatMulNBits, too. Default 0: float.
   */
  accuracyLevel?: 0 | 1 | 2 | 3 | 4;
  /** Stores tensors from 1 KiB in a second file, `<model's file>_data`. Default: if the model would exceed 1.5 GiB. */
  externalData?: boolean;
  /**
   * Quantizes weights that are also inputs of the graph, with the weight as the default: they become constants that a
   * caller can no longer set. Default false. Files of format version 3, where every weight is an input, do not need it.
   */
  constantInputs?: boolean;
}

/** Options of GGUF outputs. */
export interface GgufOptions {
  /**
   * Importance matrix from llama-imatrix or `importance` (bytes, GGUF or .dat): scales minimize the error where inputs
   * are large, as in llama-quantize --imatrix. Excludes `calibration`.
   */
  imatrix?: Uint8Array;
  /** Name of the matrix, for the file's metadata. */
  imatrixName?: string;
  /**
   * Splits into NAME-00001-of-00003.gguf and so on, each with at most this many tensor bytes or one tensor; llama.cpp
   * opens the first. Default: one file.
   */
  shardBytes?: number;
  /**
   * Writes the towers and the projector of a model that sees images in place of the language model: mmproj-NAME-F16.gguf, the
   * file that llama.cpp's `--mmproj` takes. Default false.
   */
  mmproj?: boolean;
}

/** What is quantized, and how it is written. */
export interface OutputOptions {
  /** Default: the model's own for GGUF and ONNX, `gguf` for its recipes, else `compressed-tensors`. */
  format?: OutputFormat;
  /** Options of ONNX outputs. */
  onnx?: OnnxOptions;
  /** Options of GGUF outputs. */
  gguf?: GgufOptions;
  /** Also quantizes vision and audio towers and projectors, which presets exclude. Default false. */
  includeTowers?: boolean;
  /**
   * Experts of checkpoints are quantized by default where transformers reads them. `include`: also where only vLLM does,
   * with a warning; where neither does, planning fails. `exclude`: they keep their dtype, regardless of the config.
   */
  experts?: 'include' | 'exclude';
}

/** Options of `plan`. */
export interface PlanOptions extends OutputOptions {
  /** Plans a run with `calibration`; without it, static inputs and outputs are left out. Default false. */
  calibrated?: boolean;
  /** Cancels. */
  signal?: AbortSignal;
}

/** Options of `preview`. */
export interface PreviewOptions extends OutputOptions {
  /** Cancels. */
  signal?: AbortSignal;
}

/** A finished run of the same model into the same format. */
export interface FormerRun {
  /** The run's config. */
  config: Config;
  /** The run's output, opened. */
  output: Model;
  /** The run's report. */
  report: RunReport;
}

/** Options of `quantizeModel`. */
export interface QuantizeModelOptions extends OutputOptions {
  /** Where the output goes. */
  target: Target;
  /**
   * For most algorithms (activations of a language model on tokens), for scales of static inputs and outputs,
   * which are left out otherwise, and for column importance in GGUF outputs.
   */
  calibration?: Calibration;
  /**
   * Copies quantized tensors that both configs treat alike from that output, with their errors, and quantizes only the
   * others; the bytes are the same. Not with calibrated configs, which process the whole model. With the same `Model` and
   * `RunReport` objects as in that run, nothing else is read. Otherwise each copied tensor is first measured against this
   * model, which reads both; tensors that cannot be measured are quantized.
   * @throws QuantizationError `argument-invalid` if that config does not make this output from this model, or if the report says
   * that it was made with another importance matrix, calibration, option or version
   */
  reuse?: FormerRun;
  /**
   * Writes one part of the output shards, under their final names, into a folder (a path) that other machines may share
   * without coordination. `mergeShards` then makes the model, with the bytes of a whole run. Safetensors formats, and
   * GGUF, which is split into a file for each part, or by `shardBytes`; no algorithms that process the whole model. @throws QuantizationError `argument-invalid`, `format-unsupported`
   */
  shards?: ShardPart;
  /** Cancels; leaves nothing behind. */
  signal?: AbortSignal;
  /** Called about ten times a second. */
  onProgress?: (progress: Progress) => void;
  /** Replaces existing output, for paths and folder handles. Default false. */
  overwrite?: boolean;
  /**
   * For folders by path, in Node: an interrupted run leaves its complete files in a partial folder, and a later run of
   * the same work with this option continues there, with the same bytes and report. Calibrated configs start over. If the
   * folder holds the whole output already, it is made again and compared. Default false.
   * @throws QuantizationError `target-invalid` if the interrupted run had another config, input or version,
   * `target-exists` if the folder holds other files, `argument-invalid` for other targets
   */
  resume?: boolean;
}

/** Options of `mergeShards`. */
export interface MergeOptions {
  /** Replaces existing small files such as tokenizer.json. Default false. */
  overwrite?: boolean;
  /** Cancels while the shards are checked; then nothing has been moved. */
  signal?: AbortSignal;
  /** Called about ten times a second, while the shards are checked. */
  onProgress?: (progress: Progress) => void;
}
