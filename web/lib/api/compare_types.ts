// Two models compared: options of `compare` and what it finds of outputs, and the distribution of one weight in both.

import type { CurveOptions, Speed } from './curve_types.js';
import type { Progress } from './progress_types.js';

/** Options of `compare`. */
export interface CompareOptions extends Pick<CurveOptions, 'runtime' | 'feeds' | 'windows' | 'measureSpeed'> {
  /**
   * Each output of floating-point values, of both models, feed by feed, with `runtime`. The arrays are of the call.
   */
  onOutput?: (output: ComparedOutput) => void;
  /** Cancels. */
  signal?: AbortSignal;
  /** Called about ten times a second, while weights are compared. */
  onProgress?: (progress: Progress) => void;
}

/** One output of one feed. */
export interface ComparedOutput {
  /** The feed's number, from 0. */
  feed: number;
  /** Name of the output. */
  name: string;
  /** Its shape in the reference. */
  shape: readonly number[];
  /** Values of the reference. */
  reference: Float32Array | Float64Array;
  /** Values of the quantized model. */
  quantized: Float32Array | Float64Array;
  /** Root of the sum of squared errors, divided by that of squared values; 1 if the shapes differ. */
  error: number;
}

/** Outputs of two ONNX models on the same feeds. */
export interface OutputComparison {
  /** Mean over outputs and feeds of {@link ComparedOutput.error}. */
  error: number;
  /** By output, the mean over the feeds. */
  outputs: {
    /** Name of the output. */
    name: string;
    /** Its error. */
    error: number;
  }[];
  /** Number of feeds. */
  feeds: number;
  /** Whether feeds were made up by type, shape and name of the inputs. */
  areGenerated: boolean;
  /** With `measureSpeed`. */
  speed?: Speed;
}

/** Histograms of a weight before and after quantization. Pairs with NaN or infinity are in no bin. */
export interface Distribution {
  /** Lower end of the range, for both and for the bins. */
  low: number;
  /** Upper end of the range. */
  high: number;
  /** Elements per bin; bins are of equal width, the last includes `high`. */
  original: number[];
  /** The same for the quantized weight. */
  quantized: number[];
  /** Number of elements. */
  count: number;
  /** The distinct values after quantization, ascending; null if there are more than 64. */
  grid: number[] | null;
  /** Elements outside of their channel's range after quantization. */
  beyond: number;
  /**
   * Per channel (first axis) 10·log10(Σx² / Σ(x−y)²); Infinity if unchanged, -Infinity if a value is NaN or infinite.
   * Null if the stored layout is transposed.
   */
  channelSqnrDb: Float64Array | null;
}

/** Options of `distribution`. */
export interface DistributionOptions {
  /** Default 200, at most 4096. */
  bins?: number;
  /** Cancels. */
  signal?: AbortSignal;
}
