// What becomes of a model: plans, known before any weight is read, and reports.

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

/** A tensor that is written. */
export interface OutputTensor {
  /** Name in the output file. */
  name: string;
  /** Stored dtype, as the output format writes it. */
  dtype: string;
  /** Stored shape; packed dimensions count words. */
  shape: number[];
  /** Size in the file. */
  bytes: number;
  /** The file that holds it. */
  file: string;
}

/** What happens to one tensor. */
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
  /** Quantized, converted to another float type, or copied as it is. */
  action: 'quantize' | 'cast' | 'copy';
  /** The spec; null for tensors that are not quantized. */
  spec: QuantizationSpec | null;
  /** The list that `spec` is part of, if there are two stages. */
  stages?: QuantizationSpec[];
  /** Why it got this spec. */
  reason: Reason;
  /** Bytes in the model. */
  bytesBefore: number;
  /** Bytes in the output, scales and zero points included. */
  bytesAfter: number;
  /** Tensors that are written for it. */
  outputs: OutputTensor[];
}

/**
 * The whole outcome of a run, known before any weight is read. Tensors share the objects of their specs and reasons, and
 * the shapes of their outputs: change none of them. `planJson` makes the short JSON of it.
 */
export interface Plan {
  /** Output format. */
  format: OutputFormat;
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensor[];
  /** Files that a run writes, with their sizes in bytes. */
  files: FileSize[];
  /** Sums over all tensors. */
  totals: Totals;
  /** Warnings and notes about config and model. */
  diagnostics: Diagnostic[];
  /** The block that config.json gets; null when the format needs none. */
  quantizationConfig: Record<string, unknown> | null;
}

/** An output as JSON. */
export interface PlannedOutputJson extends Omit<OutputTensor, 'name' | 'file'> {
  /** What follows the layer in its name; outputs with a suffix stand in `PlanJson.outputs`. */
  suffix?: string;
  /** The whole name, where it does not begin with the layer. */
  name?: string;
  /** Number in `PlanJson.files`. */
  file: number;
}

/** A planned tensor as JSON. What several tensors share stands once in the document and is named by its number there. */
export interface PlannedTensorJson extends Omit<PlannedTensor, 'layer' | 'spec' | 'stages' | 'reason' | 'outputs'> {
  /** Module name, where it is not the tensor name without `.weight` or `.bias`. */
  layer?: string;
  /** Number in `PlanJson.specs`; null for tensors that are not quantized. */
  spec: number | null;
  /** Numbers in `PlanJson.specs`: the list that `spec` is part of. */
  stages?: number[];
  /** Number in `PlanJson.reasons`. */
  reason: number;
  /** Numbers in `PlanJson.outputs`, or outputs that no other tensor can share. */
  outputs: (number | PlannedOutputJson)[];
}

/** A plan as JSON, such as `wasmquant plan --json` prints it. `planOf` reads it. */
export interface PlanJson extends Omit<Plan, 'tensors'> {
  /** Specs that tensors name by number. */
  specs: QuantizationSpec[];
  /** Reasons that tensors name by number. */
  reasons: Reason[];
  /** Outputs that tensors name by number. */
  outputs: PlannedOutputJson[];
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensorJson[];
}

/** Sums over the tensors of a plan or report. */
export interface Totals {
  /** Tensors in all. */
  tensors: number;
  /** Tensors that are quantized. */
  quantized: number;
  /** Bytes of all tensors in the model. */
  bytesBefore: number;
  /** Bytes of all tensors in the output. */
  bytesAfter: number;
  /** Bits per element of the quantized weights, with scales and zero points. */
  bitsPerWeight: number;
  /** How much of the model is quantized, and why the rest is not. */
  coverage: Coverage;
}

/** How much of a model is quantized. Parameters are elements, and bytes those of the source's tensors. */
export interface Coverage {
  /** Elements of all tensors. */
  parameters: number;
  /** Elements of quantized tensors. */
  quantizedParameters: number;
  /** Bytes of all tensors. */
  bytes: number;
  /** Bytes, in the model, of tensors that are quantized. */
  quantizedBytes: number;
  /** What stays as it is, one row a reason, the largest number of bytes first. */
  left: LeftTensors[];
}

/** Tensors that stay as they are for the same reason. */
export interface LeftTensors {
  /** Kind of the rule. */
  rule: Reason['rule'];
  /** The reason, a sentence. */
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

/** Error of a tensor against its original. Where either holds NaN or infinity, the error is infinite. */
export interface TensorError {
  /** 10·log10(Σx² / Σ(x−y)²); Infinity when equal, -Infinity when not all values are finite. */
  sqnrDb: number;
  /** Mean of (x−y)². */
  mse: number;
  /** Largest |x−y|. */
  maxAbs: number;
  /** Cosine of the angle between x and y; NaN when not all values are finite. */
  cosine: number;
  /** Values that are NaN or infinite, in each of the two; only where there are any. */
  nonFinite?: NonFiniteCounts;
}

/** One tensor of a report. */
export interface TensorReport extends Omit<PlannedTensor, 'outputs'> {
  /** Null for tensors that were copied. */
  error: TensorError | null;
}

/** One of several parts of a run; parts count from 1. */
export interface ShardPart {
  /** From 1 to `of`. */
  part: number;
  /** Number of parts. */
  of: number;
}

/** What a run did. */
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
  /** Of runs with `reuse`: quantized tensors that were copied from the former output. */
  reused?: number;
  /** Of runs with `shards`: which part this is; tensors, files and totals are those of the part, but `totals.coverage` is that of the whole. */
  shards?: ShardPart;
  /** Of runs with `resume`: files that an interrupted run had finished. */
  resumedFiles?: number;
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Workers that took part; 0: the run used the calling thread. */
  threads: number;
}
