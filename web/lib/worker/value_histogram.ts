// Two passes over a tensor of two models, x and y: range, grid and error per channel, then histograms over the range.

/** Larger grids are no visual help. */
const mostGridValues = 64;

export class ValueRanges {
  /** Of all finite values. */
  low = Number.POSITIVE_INFINITY;
  high = Number.NEGATIVE_INFINITY;
  count = 0;
  /** Values of y; null: too many. */
  grid: Set<number> | null = new Set();
  /** Σx², Σ(x−y)² per channel; infinite if a value is not finite. */
  readonly sums: Float64Array;
  /** Range of y per channel. */
  readonly lows: Float32Array;
  readonly highs: Float32Array;
  readonly #inner: number;

  constructor(channels: number, inner: number) {
    this.#inner = inner;
    this.sums = new Float64Array(2 * channels);
    this.lows = new Float32Array(channels).fill(Number.POSITIVE_INFINITY);
    this.highs = new Float32Array(channels).fill(Number.NEGATIVE_INFINITY);
  }

  channelOf(element: number): number {
    return this.lows.length === 1 ? 0 : Math.floor(element / this.#inner);
  }

  add(x: Float32Array, y: Float32Array, first: number): void {
    for (let i = 0; i < x.length; ++i) {
      const [was = 0, is = 0] = [x[i], y[i]];
      const channel = this.channelOf(first + i);
      if (!Number.isFinite(was) || !Number.isFinite(is)) {
        this.sums[2 * channel + 1] = Number.POSITIVE_INFINITY;
        continue;
      }
      this.low = Math.min(this.low, was, is);
      this.high = Math.max(this.high, was, is);
      this.lows[channel] = Math.min(this.lows[channel] ?? is, is);
      this.highs[channel] = Math.max(this.highs[channel] ?? is, is);
      this.sums[2 * channel] = (this.sums[2 * channel] ?? 0) + was * was;
      this.sums[2 * channel + 1] = (this.sums[2 * channel + 1] ?? 0) + (was - is) * (was - is);
      if (this.grid?.add(is) && this.grid.size > mostGridValues) this.grid = null;
    }
    this.count += x.length;
  }
}

export class ValueHistogram {
  readonly low: number;
  readonly high: number;
  /** Counts of x and y per bin. */
  readonly original: number[];
  readonly quantized: number[];
  /** Values of x outside y's range in their channel. */
  beyond = 0;
  readonly #ranges: ValueRanges;
  /** Bins per unit. */
  readonly #scale: number;

  constructor(ranges: ValueRanges, bins: number) {
    this.#ranges = ranges;
    // Without a finite value there is no range. Adding 0 turns -0 into 0.
    [this.low, this.high] = ranges.low <= ranges.high ? [ranges.low + 0, ranges.high + 0] : [0, 0];
    this.#scale = this.high > this.low ? bins / (this.high - this.low) : 0;
    this.original = new Array<number>(bins).fill(0);
    this.quantized = new Array<number>(bins).fill(0);
  }

  add(x: Float32Array, y: Float32Array, first: number): void {
    const { lows, highs } = this.#ranges;
    for (let i = 0; i < x.length; ++i) {
      const [was = 0, is = 0] = [x[i], y[i]];
      const channel = this.#ranges.channelOf(first + i);
      if (!Number.isFinite(was) || !Number.isFinite(is)) continue;
      this.#count(this.original, was);
      this.#count(this.quantized, is);
      if (was < (lows[channel] ?? was) || was > (highs[channel] ?? was)) this.beyond += 1;
    }
  }

  #count(histogram: number[], value: number): void {
    const bin = Math.min(histogram.length - 1, Math.floor((value - this.low) * this.#scale));
    histogram[bin] = (histogram[bin] ?? 0) + 1;
  }
}
