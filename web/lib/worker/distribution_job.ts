// Decodes a tensor of two models: first for range, grid and error per channel, then for the histograms.

import { decodedPairs } from './compare_job.js';
import type { JobHost } from './job_host.js';
import type { DistributionWork, FoundDistribution } from './jobs.js';

/** Larger grids are no visual help. */
const mostGridValues = 64;

/** Called per tile with both models' float32 values; `first`: their offset in the tensor, C order. */
type Visit = (x: Float32Array, y: Float32Array, first: number) => void;

class Ranges {
  low = Number.POSITIVE_INFINITY;
  high = Number.NEGATIVE_INFINITY;
  count = 0;
  grid: Set<number> | null = new Set();
  /** Σx², Σ(x−y)² per channel. */
  readonly sums: Float64Array;
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

  readonly see: Visit = (x, y, first) => {
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
  };
}

async function eachTile(host: JobHost, { pair, tiles }: DistributionWork, visit: Visit): Promise<void> {
  let first = 0;
  for await (const { x, y, count } of decodedPairs(host, { pair, first: 0, last: tiles })) {
    visit(host.instance.float32(x, count), host.instance.float32(y, count), first);
    first += count;
  }
}

export async function runDistribution(host: JobHost, work: DistributionWork): Promise<FoundDistribution> {
  const { channels, inner, bins } = work;
  const ranges = new Ranges(channels, inner);
  await eachTile(host, work, ranges.see);
  const { count, grid, lows, highs, sums } = ranges;
  // Without a finite value there is no range. Adding 0 turns -0 into 0.
  const [low, high] = ranges.low <= ranges.high ? [ranges.low + 0, ranges.high + 0] : [0, 0];
  const [original, quantized] = [new Array<number>(bins).fill(0), new Array<number>(bins).fill(0)];
  const scale = high > low ? bins / (high - low) : 0;
  const binOf = (value: number) => Math.min(bins - 1, Math.floor((value - low) * scale));
  const add = (histogram: number[], bin: number) => {
    histogram[bin] = (histogram[bin] ?? 0) + 1;
  };
  let beyond = 0;
  await eachTile(host, work, (x, y, first) => {
    for (let i = 0; i < x.length; ++i) {
      const [was = 0, is = 0] = [x[i], y[i]];
      const channel = ranges.channelOf(first + i);
      if (!Number.isFinite(was) || !Number.isFinite(is)) continue;
      add(original, binOf(was));
      add(quantized, binOf(is));
      if (was < (lows[channel] ?? was) || was > (highs[channel] ?? was)) beyond += 1;
    }
  });
  const sorted = grid && [...grid].sort((a, b) => a - b);
  return { low, high, original, quantized, count, grid: sorted, beyond, sums };
}
