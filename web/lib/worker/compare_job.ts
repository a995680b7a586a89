// Decodes a stored tensor of two models side by side, tile by tile.

import type { BoundTensorDecoder, StoredTile } from '../engine/module.js';
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
      const decoder = instance.run((module) => new module.TensorDecoder(work, task));
      decoders.push(decoder);
      instance.call<null>(() => decoder.error());
    }
    for (let tile = first; tile < last; ++tile) {
      await host.pause();
      const values: { pointer: number; count: number }[] = [];
      for (const [model, decoder] of decoders.entries()) {
        await host.read(model, decoder, tile);
        values.push(instance.call(() => decoder.decode(tile)));
      }
      const [x, y] = values;
      if (!x || !y || x.count !== y.count)
        throw new RangeError(`tile ${tile} has ${x?.count} and ${y?.count} elements`);
      yield { x: x.pointer, y: y.pointer, count: x.count };
    }
  } finally {
    for (const decoder of decoders) instance.free(decoder);
  }
}

export async function compareTiles(host: JobHost, work: JobKinds['compare']['work']): Promise<TileResult> {
  const sums: Float64Array[] = [];
  for await (const { x, y, count } of decodedPairs(host, work))
    sums.push(host.sums(host.instance.call<StoredTile>((module) => module.errorBetween(x, y, count))));
  return { sums: joined(sums), state: null };
}
