// What runs and comparisons find: the error of each tensor, sizes, files.

import type { OutputComparison } from './compare_types.js';
import type { Diagnostic } from './diagnostic_types.js';
import type { OutputFormat } from './formats.js';
import type { FileSize } from './model_types.js';
import type { PlannedTensor, Totals } from './plan_types.js';

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

/** What reports of runs and comparisons have in common. */
export interface Report {
  /** Every tensor, in file order. */
  tensors: TensorReport[];
  /** Sums over all tensors. */
  totals: Totals;
  /** Warnings and notes. */
  diagnostics: Diagnostic[];
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Number of workers used; 0: the calling thread was used. */
  threads: number;
}

/** The result of a run. */
export interface RunReport extends Report {
  /** Output format. */
  format: OutputFormat;
  /** Files that were written, with their sizes in bytes. */
  files: FileSize[];
  /** What decided the output, apart from the model's values and the files' names and headers. `reuse` compares it. */
  identity: RunIdentity;
  /** With `reuse`: number of quantized tensors copied from the former output. */
  reused?: number;
  /** With `shards`: the part; tensors, files and totals cover the part, but `totals.coverage` the whole. */
  shards?: ShardPart;
  /** With `resume`: number of files an interrupted run had finished. */
  resumedFiles?: number;
}

/** Two models, compared. */
export interface Comparison extends Report {
  /** Files of the quantized model, with their sizes in bytes. */
  files: FileSize[];
  /** With `runtime`: the outputs of two ONNX models. */
  outputs?: OutputComparison;
}
