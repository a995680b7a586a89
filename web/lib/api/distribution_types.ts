// How the values of one tensor lie, before and after.

/** Values of a weight and of what became of it, counted side by side. Pairs with NaN or infinity are in no bin. */
export interface Distribution {
  /** Range of both, and so of the bins. */
  low: number;
  /** Upper end of the range. */
  high: number;
  /** Elements per bin; bins are of equal width, the last includes `high`. */
  original: number[];
  /** The same for the quantized weight. */
  quantized: number[];
  /** Elements in all. */
  count: number;
  /** The values that occur after quantization, ascending; null when there are more than 64. */
  grid: number[] | null;
  /** Elements outside of the range that their channel has after quantization. */
  beyond: number;
  /**
   * Per channel (first axis) 10·log10(Σx² / Σ(x−y)²); Infinity where nothing changed, -Infinity where a value
   * is NaN or infinite. Null where the stored layout is
   * transposed.
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
