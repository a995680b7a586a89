// Plans, made before any weight is read, and reports.

import type { OutputComparison } from './compare_types.js';
import type { Diagnostic } from './diagnostic_types.js';
import type { OutputFormat } from './formats.js';
import type { FileSize } from './model_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Why a tensor got its spec. */
export interface Reason {
  /** Kind of the rule that decided. */
  rule:
    | 'excluded'
    | 'default-exclusion'
    | 'layer-name'
    | 'layer-glob'
    | 'layer-type'
    | 'global'
    | 'not-a-weight'
    | 'not-quantizable'
    | 'no-config';
  /** JSON pointer of the deciding key. */
  where: string;
  /** A sentence. */
  text: string;
}

/** A tensor in the output. */
export interface OutputTensor {
  /** Name in the output file. */
  name: string;
  /** Stored dtype, as the output format writes it. */
  dtype: string;
  /** Stored shape; packed dimensions count words. */
  shape: number[];
  /** Size in the file. */
  bytes: number;
  /** The file that contains it. */
  file: string;
}

/** A tensor's plan. */
export interface PlannedTensor {
  /** Tensor name in the model. */
  name: string;
  /** Module name: the tensor name without `.weight` or `.bias`. */
  layer: string;
  /** Class of the layer, such as `Linear`; empty if unknown. */
  layerType: string;
  /** Storage dtype in the model. */
  dtype: string;
  /** Shape in the model. */
  shape: number[];
  /** Quantized, converted to another float type, or copied. */
  action: 'quantize' | 'cast' | 'copy';
  /** The spec; null for tensors that are not quantized. */
  spec: QuantizationSpec | null;
  /** Both specs if there are two stages; `spec` is one of them. */
  stages?: QuantizationSpec[];
  /** Why it got this spec. */
  reason: Reason;
  /** Bytes in the model. */
  bytesBefore: number;
  /** Bytes in the output, scales and zero points included. */
  bytesAfter: number;
  /** Tensors written for it. */
  outputs: OutputTensor[];
}

/**
 * The complete outcome of a run, made before any weight is read. Tensors share spec, reason and shape objects: do not
 * modify them. `planJson` makes its compact JSON.
 */
export interface Plan {
  /** Output format. */
  format: OutputFormat;
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensor[];
  /** Files that a run writes, with their sizes in bytes. ONNX files are in `onnx/` if the run writes a folder by path; a plan without a run says so for
   * models that are in such a folder themselves. */
  files: FileSize[];
  /** Sums over all tensors. */
  totals: Totals;
  /** Warnings and notes about config and model. */
  diagnostics: Diagnostic[];
  /** The quantization block for config.json; null if the format needs none. */
  quantizationConfig: Record<string, unknown> | null;
}

/** An output as JSON. */
export interface PlannedOutputJson extends Omit<OutputTensor, 'name' | 'file'> {
  /** The name after the layer; outputs with a suffix are in `PlanJson.outputs`. */
  suffix?: string;
  /** The whole name if it does not begin with the layer. */
  name?: string;
  /** Index into `PlanJson.files`. */
  file: number;
}

/** A planned tensor as JSON. Shared values are indexes into lists of the document. */
export interface PlannedTensorJson extends Omit<PlannedTensor, 'layer' | 'spec' | 'stages' | 'reason' | 'outputs'> {
  /** Module name, if not the tensor name without `.weight` or `.bias`. */
  layer?: string;
  /** Index into `PlanJson.specs`; null for tensors that are not quantized. */
  spec: number | null;
  /** Indexes into `PlanJson.specs`, if there are two stages. */
  stages?: number[];
  /** Index into `PlanJson.reasons`. */
  reason: number;
  /** Indexes into `PlanJson.outputs`, or unshared outputs. */
  outputs: (number | PlannedOutputJson)[];
}

/** A plan as JSON, as printed by `wasmquant plan --json`. `planOf` reads it. */
export interface PlanJson extends Omit<Plan, 'tensors'> {
  /** Specs, referenced by index. */
  specs: QuantizationSpec[];
  /** Reasons, referenced by index. */
  reasons: Reason[];
  /** Outputs, referenced by index. */
  outputs: PlannedOutputJson[];
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensorJson[];
}

/** Sums over a plan or report: tensors, and sizes of whole files. */
export interface Totals {
  /** Number of tensors. */
  tensors: number;
  /** Number of quantized tensors. */
  quantized: number;
  /** Bytes of the model's weight files: tensors, headers, graph, tokenizer of a GGUF file, everything in them. */
  bytesBefore: number;
  /** Bytes of the weight files that are written, likewise: the sum over `Plan.files`. Small files of a folder, such as
   * config.json, are not counted. */
  bytesAfter: number;
  /** Bits per element of the quantized weights, including scales and zero points. */
  bitsPerWeight: number;
  /** How much of the model is quantized, and why the rest is not. */
  coverage: Coverage;
}

/** How much of a model is quantized, in source elements (parameters) and source bytes. */
export interface Coverage {
  /** Elements of all tensors. */
  parameters: number;
  /** Elements of quantized tensors. */
  quantizedParameters: number;
  /** Bytes of all tensors. */
  bytes: number;
  /** Source bytes of quantized tensors. */
  quantizedBytes: number;
  /** What is not quantized, one row per reason, largest first. */
  left: LeftTensors[];
}

/** Tensors not quantized for the same reason. */
export interface LeftTensors {
  /** Kind of the rule. */
  rule: Reason['rule'];
  /** The reason, as a sentence. */
  text: string;
  /** Number of tensors. */
  tensors: number;
  /** Their elements. */
  parameters: number;
  /** Their bytes in the model. */
  bytes: number;
}

/** Values that are NaN or infinite. */
export interface NonFiniteCounts {
  /** In the original tensor. */
  reference: number;
  /** In the quantized tensor. */
  quantized: number;
}

/** Error of a tensor against its original; infinite if either has NaN or infinity. */
export interface TensorError {
  /** 10·log10(Σx² / Σ(x−y)²); Infinity if equal, -Infinity if not all values are finite. */
  sqnrDb: number;
  /** Mean of (x−y)². */
  mse: number;
  /** Largest |x−y|. */
  maxAbs: number;
  /** Cosine of the angle between x and y; NaN if not all values are finite. */
  cosine: number;
  /** NaN and infinite values in each; absent if there are none. */
  nonFinite?: NonFiniteCounts;
}

/** One tensor of a report. */
export interface TensorReport extends Omit<PlannedTensor, 'outputs'> {
  /** Null for tensors that were copied. */
  error: TensorError | null;
  /** What calibration inputs say about the layer, where an algorithm used their products (`awq`, `gptq` and the like). */
  calibration?: LayerCalibration;
}

/**
 * What calibration inputs say about one layer. Powers of its outputs are expectations: measured on the calibration inputs; in
 * directions that these do not cover, features count as uncorrelated.
 */
export interface LayerCalibration {
  /** Tokens that reached the layer. */
  tokens: number;
  /** Input features that are not always zero. */
  features: number;
  /** Directions that the inputs show, at most `features`; of fewer, the algorithm knows nothing. */
  rank: number;
  /** Signal to noise of the layer's outputs. Null for algorithms that also make up for the errors of earlier layers. */
  outputSqnrDb: number | null;
  /** The same if the weight were rounded to nearest without any algorithm but rotation and cle. */
  nearestSqnrDb: number | null;
  /** Whether rounding to nearest is expected to be better than what was stored. */
  isWorse: boolean;
  /** Whether `on_worse` put rounding to nearest in the place of the algorithm's. */
  isNearest: boolean;
}

/** One of several parts of a run. */
export interface ShardPart {
  /** From 1 to `of`. */
  part: number;
  /** Number of parts. */
  of: number;
}

/** Two runs of equal identity on models of equal values give equal tensors. */
export interface RunIdentity {
  /** Version of the library. */
  library: string;
  /** A digest of what is done to each tensor: spec, importance, static scales, and places in the files. */
  tasks: string;
}

/** The result of a run. */
export interface Report {
  /** Output format; null for comparisons. */
  format: OutputFormat | null;
  /** Every tensor, in file order. */
  tensors: TensorReport[];
  /** Files that were written, with their sizes in bytes. */
  files: FileSize[];
  /** Sums over all tensors. */
  totals: Totals;
  /** Warnings and notes of plan and run. */
  diagnostics: Diagnostic[];
  /** Of runs: what decided the output, apart from the model's values and the files' names and headers. `reuse` compares it. */
  identity?: RunIdentity;
  /** With `reuse`: number of quantized tensors copied from the former output. */
  reused?: number;
  /** With `shards`: the part; tensors, files and totals cover the part, but `totals.coverage` the whole. */
  shards?: ShardPart;
  /** With `resume`: number of files an interrupted run had finished. */
  resumedFiles?: number;
  /** Of `compare` with `runtime`: the outputs of two ONNX models. */
  outputs?: OutputComparison;
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Number of workers used; 0: the run used the calling thread. */
  threads: number;
}
