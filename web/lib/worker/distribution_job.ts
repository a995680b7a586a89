// Decodes a tensor of two models twice: first for range, grid and error per channel, then for the histograms.

import { decodedPairs } from './compare_job.js';
import type { JobHost } from './job_host.js';
import type { DistributionWork, FoundDistribution } from './jobs.js';
import { ValueHistogram, ValueRanges } from './value_histogram.js';

export async function runDistribution(host: JobHost, work: DistributionWork): Promise<FoundDistribution> {
  const ranges = new ValueRanges(work.channels, work.inner);
  await addTiles(host, work, ranges);
  const histogram = new ValueHistogram(ranges, work.bins);
  await addTiles(host, work, histogram);
  const { low, high, original, quantized, beyond } = histogram;
  const grid = ranges.grid && [...ranges.grid].sort((a, b) => a - b);
  return { low, high, original, quantized, count: ranges.count, grid, beyond, sums: ranges.sums };
}

/** Adds each tile's float32 values of both models; `first`: their offset in the tensor, C order. */
async function addTiles(
  host: JobHost,
  { work, pair, tiles }: DistributionWork,
  sums: { add(x: Float32Array, y: Float32Array, first: number): void },
): Promise<void> {
  let first = 0;
  for await (const { x, y, count } of decodedPairs(host, { work, pair, first: 0, last: tiles })) {
    sums.add(
      host.instance.float32({ pointer: x, bytes: 4 * count }),
      host.instance.float32({ pointer: y, bytes: 4 * count }),
      first,
    );
    first += count;
  }
}
