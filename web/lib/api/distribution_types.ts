// How a tensor's values are distributed, before and after quantization.

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
