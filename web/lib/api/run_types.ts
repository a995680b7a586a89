// Options of plans and runs.

import type { Calibration } from './calibration_types.js';
import type { OutputFormat } from './formats.js';
import type { Model } from './model_types.js';
import type { Report, ShardPart } from './plan_types.js';
import type { Progress } from './progress_types.js';
import type { Target } from './source_types.js';

/** Of ONNX outputs. Which operators read the weights follows from the config, see the guide "Formats". */
export interface OnnxOptions {
  /** DequantizeLinear before every quantized weight (QDQ), no MatMulNBits and no integer operators. Default false. */
  qdq?: boolean;
  /** What MatMulNBits may compute with: 1 float32, 2 float16, 3 bfloat16, 4 int8; default 0, which leaves it to the runtime. */
  accuracyLevel?: 0 | 1 | 2 | 3 | 4;
  /** Tensors of 1 KiB and more in a file of their own, `<model's file>_data`. Default: when the model would exceed 1.5 GiB. */
  externalData?: boolean;
}

/** Of GGUF outputs. */
export interface GgufOptions {
  /**
   * Bytes of an importance matrix, as llama-imatrix or `importance` made it (GGUF or .dat): scales are chosen for the
   * least error where inputs are large, as llama-quantize --imatrix does. Not together with `calibration`.
   */
  imatrix?: Uint8Array;
  /** What it is called, for the file's metadata. */
  imatrixName?: string;
  /**
   * Several files, NAME-00001-of-00003.gguf and so on, each with at most so many bytes of tensors (but at least one tensor).
   * llama.cpp opens the first. Default: one file.
   */
  shardBytes?: number;
}

/** Options of `plan`. */
export interface PlanOptions {
  /** Default: that of GGUF and ONNX models, `gguf` for its recipes, else `compressed-tensors`. */
  format?: OutputFormat;
  /** Options of ONNX outputs. */
  onnx?: OnnxOptions;
  /** Options of GGUF outputs. */
  gguf?: GgufOptions;
  /** Quantizes vision and audio towers and projectors, too, which presets leave alone. Default false. */
  includeTowers?: boolean;
  /**
   * Quantizes experts of compressed-tensors outputs, too, under per-expert names that vLLM reads; transformers cannot load
   * such files. Default false.
   */
  includeExperts?: boolean;
  /** As it will be with calibration: without, static inputs and outputs are left out. Runs see for themselves. */
  calibrated?: boolean;
}

/** A finished run of the same model into the same format. */
export interface FormerRun {
  /** Its config. */
  config: string | object;
  /** What it wrote, opened. */
  output: Model;
  /** Its report. */
  report: Report;
}

/** Options of `quantizeModel`. */
export interface QuantizeModelOptions extends PlanOptions {
  /** Where the output goes. */
  target: Target;
  /**
   * For configs with algorithms, most of which see the activations of a Llama-architecture model on tokens, and for scales
   * of static inputs and outputs, which are left out without it. For GGUF outputs: the importance of columns.
   */
  calibration?: Calibration;
  /**
   * Quantized tensors that both configs treat the same are copied from that output, with the errors of its report; only the
   * others are quantized. The bytes are those of a whole run. Not with calibrated configs, which go through the whole model.
   * @throws QuantizationError `argument-invalid` when the output is not what that config makes of this model
   */
  reuse?: FormerRun;
  /**
   * Writes one part of the output shards, under the names that the whole run gives them, into a folder (a path) that other
   * machines may write theirs to; the parts need not know of each other. When all are there, `mergeShards` makes a model of
   * them, with the bytes of the whole run. Safetensors formats only, and no algorithms that go through the whole model.
   * @throws QuantizationError `argument-invalid`, `format-unsupported`
   */
  shards?: ShardPart;
  /** Cancels; nothing is left behind. */
  signal?: AbortSignal;
  /** Called about ten times a second. */
  onProgress?: (progress: Progress) => void;
  /** Paths and folder handles: replace existing output. Default false. */
  overwrite?: boolean;
  /**
   * Folders by path, in Node: files that are complete when the run is interrupted are kept, in a partial folder, and a
   * later run of the same work with this option goes on from there, with the same bytes and the same report. Calibrated
   * configs start anew. Default false.
   * @throws QuantizationError `target-invalid` when an interrupted run there was of another config, input or version,
   * `argument-invalid` for other targets
   */
  resume?: boolean;
}
