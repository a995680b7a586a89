// Decodes a stored tensor of two models side by side, tile by tile.

import type { BoundTensorDecoder, HeapBytes } from '../engine/module.js';
import { type JobHost, joined } from './job_host.js';
import type { JobKinds, TileResult } from './jobs.js';

/** Addresses of a tile's float32 values in both models, valid until the next tile. */
interface DecodedPair {
  x: number;
  y: number;
  count: number;
}

/** The tiles of both models, with the same elements. */
export async function* decodedPairs(
  host: JobHost,
  { work: number, pair, first, last }: Omit<JobKinds['compare']['work'], 'item'>,
): AsyncGenerator<DecodedPair> {
  const { instance } = host;
  const decoders: BoundTensorDecoder[] = [];
  try {
    const work = host.work(number);
    for (const task of [2 * pair, 2 * pair + 1]) {
      decoders.push(instance.make((module) => module.TensorDecoder.make(work, task)));
    }
    for (let tile = first; tile < last; ++tile) {
      await host.pause();
      const values: HeapBytes[] = [];
      for (const [model, decoder] of decoders.entries()) {
        await host.read(model, decoder, tile);
        values.push(instance.region(() => decoder.decode(tile)));
      }
      const [x, y] = values;
      if (!x || !y || x.bytes !== y.bytes) throw new RangeError(`tile ${tile} has ${x?.bytes} and ${y?.bytes} bytes`);
      yield { x: x.pointer, y: y.pointer, count: x.bytes / 4 };
    }
  } finally {
    for (const decoder of decoders) instance.free(decoder);
  }
}

export async function compareTiles(host: JobHost, work: JobKinds['compare']['work']): Promise<TileResult> {
  const sums: Float64Array[] = [];
  for await (const { x, y, count } of decodedPairs(host, work))
    sums.push(host.instance.tile((module) => module.errorBetween(x, y, count)).sums);
  return { sums: joined(sums), state: null };
}
