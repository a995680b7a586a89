// One tensor of two models, decoded side by side and counted: first its range, its grid and the error of each channel,
// then the histograms, because bins need the range.

import type { Distribution } from '../api/distribution_types.js';
import type { Instance } from '../engine/instance.js';
import type { BoundTensorDecoder } from '../engine/module.js';
import type { DistributionWork, PartResult } from './protocol.js';

/** A grid of more values than this is no help to the eye. */
const mostGridValues = 64;

/** What goes back as JSON; sums of channels go as they are. */
export type DistributionJson = Omit<Distribution, 'channelSqnrDb'>;

/** Sees each tile as float32 values of both models; `first` = their place in the tensor, C order. */
type Visit = (x: Float32Array, y: Float32Array, first: number) => void;

class Ranges {
  low = Number.POSITIVE_INFINITY;
  high = Number.NEGATIVE_INFINITY;
  count = 0;
  grid: Set<number> | null = new Set();
  /** Σx², Σ(x−y)² of each channel. */
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

async function eachTile(
  instance: Instance,
  decoders: [BoundTensorDecoder, BoundTensorDecoder],
  tiles: number,
  read: (model: number, decoder: BoundTensorDecoder, tile: number) => Promise<void>,
  visit: Visit,
): Promise<void> {
  let first = 0;
  for (let tile = 0; tile < tiles; ++tile) {
    const values: Float32Array[] = [];
    for (const [model, decoder] of decoders.entries()) {
      await read(model, decoder, tile);
      const { pointer, count } = instance.call<{ pointer: number; count: number }>(() => decoder.decode(tile));
      values.push(instance.float32(pointer, count));
    }
    const [x, y] = values;
    if (!x || !y || x.length !== y.length)
      throw new RangeError(`tile ${tile} has ${x?.length} and ${y?.length} elements`);
    visit(x, y, first);
    first += x.length;
  }
}

/** Runs it. `read` brings what a tile of a decoder needs into its memory. */
export async function runDistribution(
  instance: Instance,
  { left, right, tiles, channels, inner, bins }: DistributionWork,
  read: (model: number, decoder: BoundTensorDecoder, tile: number) => Promise<void>,
): Promise<PartResult> {
  const made: BoundTensorDecoder[] = [];
  const decoder = (task: string) => {
    const bound = instance.run((module) => new module.TensorDecoder(task));
    made.push(bound);
    instance.call(() => bound.info());
    return bound;
  };
  try {
    const decoders: [BoundTensorDecoder, BoundTensorDecoder] = [decoder(left), decoder(right)];
    const ranges = new Ranges(channels, inner);
    await eachTile(instance, decoders, tiles, read, ranges.see);
    const { count, grid, lows, highs, sums } = ranges;
    const [low, high] = ranges.low <= ranges.high ? [ranges.low, ranges.high] : [0, 0]; // no value is finite
    const [original, quantized] = [new Array<number>(bins).fill(0), new Array<number>(bins).fill(0)];
    const scale = high > low ? bins / (high - low) : 0;
    const binOf = (value: number) => Math.min(bins - 1, Math.floor((value - low) * scale));
    const add = (histogram: number[], bin: number) => {
      histogram[bin] = (histogram[bin] ?? 0) + 1;
    };
    let beyond = 0;
    await eachTile(instance, decoders, tiles, read, (x, y, first) => {
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
    const found: DistributionJson = { low, high, original, quantized, count, grid: sorted, beyond };
    return { sums, state: new TextEncoder().encode(JSON.stringify(found)) };
  } finally {
    for (const bound of made) instance.free(bound);
  }
}
