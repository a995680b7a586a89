// What becomes of a model: plans, known before any weight is read, and reports.

import type { Diagnostic } from './diagnostic_types.js';
import type { OutputFormat } from './output_formats.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Why a tensor got its spec. */
export interface Reason {
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

/** What happens to one tensor. */
export interface PlannedTensor {
  name: string;
  layer: string;
  layerType: string;
  dtype: string;
  shape: number[];
  action: 'quantize' | 'cast' | 'copy';
  spec: QuantizationSpec | null;
  /** The list that `spec` is part of, where two stages make the codes. */
  stages?: QuantizationSpec[];
  reason: Reason;
  bytesBefore: number;
  bytesAfter: number;
  outputs: { name: string; dtype: string; shape: number[]; bytes: number; file: string }[];
}

/** The whole outcome of a run, known before any weight is read. */
export interface Plan {
  format: OutputFormat;
  tensors: PlannedTensor[];
  files: { name: string; bytes: number }[];
  totals: Totals;
  diagnostics: Diagnostic[];
  /** The block that config.json gets; null when the format needs none. */
  quantizationConfig: Record<string, unknown> | null;
}

export interface Totals {
  tensors: number;
  quantized: number;
  bytesBefore: number;
  bytesAfter: number;
  /** Bits per element of the quantized weights, with scales and zero points. */
  bitsPerWeight: number;
  coverage: Coverage;
}

/** How much of a model is quantized. Parameters are elements, and bytes those of the source's tensors. */
export interface Coverage {
  parameters: number;
  quantizedParameters: number;
  bytes: number;
  quantizedBytes: number;
  /** What stays as it is, one row a reason, the largest number of bytes first. */
  left: LeftTensors[];
}

/** Tensors that stay as they are for the same reason. */
export interface LeftTensors {
  rule: Reason['rule'];
  /** The reason, a sentence. */
  text: string;
  tensors: number;
  parameters: number;
  bytes: number;
}

/** Error of a tensor against its original. Where either holds NaN or infinity, the error is infinite. */
export interface TensorError {
  /** 10·log10(Σx² / Σ(x−y)²); Infinity when equal, -Infinity when not all values are finite. */
  sqnrDb: number;
  mse: number;
  maxAbs: number;
  /** Cosine of the angle between x and y; NaN when not all values are finite. */
  cosine: number;
  /** Values that are NaN or infinite, in each of the two; only where there are any. */
  nonFinite?: { reference: number; quantized: number };
}

/** One tensor of a report. */
export interface TensorReport extends Omit<PlannedTensor, 'outputs'> {
  /** Null for tensors that were copied. */
  error: TensorError | null;
}

/** One of several parts of a run; parts count from 1. */
export interface ShardPart {
  part: number;
  of: number;
}

/** What a run did. */
export interface Report {
  format: OutputFormat | null;
  tensors: TensorReport[];
  files: { name: string; bytes: number }[];
  totals: Totals;
  diagnostics: Diagnostic[];
  /** Of runs with `reuse`: quantized tensors that were copied from the former output. */
  reused?: number;
  /** Of runs with `shards`: which part this is; tensors, files and totals are those of the part, but `totals.coverage` is that of the whole. */
  shards?: ShardPart;
  /** Of runs with `resume`: files that an interrupted run had finished. */
  resumedFiles?: number;
  /** Wall time in milliseconds. */
  durationMs: number;
  threads: number;
}
