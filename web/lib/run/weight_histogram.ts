// Histogram, grid and per-channel error of one tensor, from its original and its quantized version.

import type { Distribution, DistributionOptions } from '../api/compare_types.js';
import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { OpenedModel } from '../model/model.js';
import { type RunResources, runOne } from '../pool/run_resources.js';
import { comparisonOf } from './compare.js';

const usualBins = 200;
const mostBins = 4096;

/** Errors: argument-invalid, tensor-missing (the models have no such weight in common), read-failed. */
export async function histogramOf(
  resources: RunResources,
  reference: OpenedModel,
  quantized: OpenedModel,
  tensor: string,
  { bins = usualBins, signal }: DistributionOptions = {},
): Promise<Distribution> {
  signal?.throwIfAborted();
  if (!Number.isInteger(bins) || bins < 1 || bins > mostBins)
    throw failure('argument-invalid', 'bins', `${bins} is not a whole number from 1 to ${mostBins}`);
  const { pairs, diagnostics, work } = comparisonOf(resources.instance, reference, quantized);
  const pair = pairs.find(({ name }) => name === tensor);
  if (!pair) {
    const reason = diagnostics.find(({ where }) => where === tensor)?.message;
    throw failure('tensor-missing', tensor, reason ?? 'is not a weight that both models have');
  }
  const [outer = 1, ...rest] = pair.report.shape;
  // Tiles of ONNX weights follow their node's orientation.
  const { hasGraph } = formats.inputs[reference.format];
  const isByRows = !hasGraph && !pair.byColumns && pair.report.shape.length > 1;
  const part = {
    kind: 'distribution' as const,
    ...pair.task.compare,
    tiles: pair.tiles,
    channels: isByRows ? outer : 1,
    inner: rest.reduce((product, size) => product * size, 1),
    bins,
  };
  const job = { label: tensor, bytes: pair.bytes, part };
  const { sums, ...found } = await runOne(
    resources,
    { models: [reference, quantized], work, sendsByJob: true },
    job,
    signal,
  );
  return { ...found, channelSqnrDb: isByRows ? channelSqnr(sums) : null };
}

function channelSqnr(sums: Float64Array): Float64Array {
  return Float64Array.from({ length: sums.length / 2 }, (_, channel) => {
    const [xx = 0, dd = 0] = sums.subarray(2 * channel, 2 * channel + 2);
    return dd === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(xx / dd);
  });
}
