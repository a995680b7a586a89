// Histogram, grid and error per channel of one tensor, from its original and from what a run made of it.

import type { Distribution, DistributionOptions } from '../api/distribution_types.js';
import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { Diagnostic, PlannedTensor } from '../api/types.js';
import { comparedTiles } from '../engine/memory.js';
import type { OpenedModel } from '../model/model.js';
import { runOne, type Workshop } from '../pool/workshop.js';

const usualBins = 200;
const mostBins = 4096;

interface PairJson {
  name: string;
  left: string;
  right: string;
  tiles: number;
  bytes: number;
  report: PlannedTensor;
}

/** Whether tiles of a pair are whole rows, one after another; others come as columns, or as an ONNX node has them. */
function hasRows(model: OpenedModel, { left, right }: PairJson): boolean {
  return !formats.inputs[model.format].hasGraph && ![left, right].some((task) => task.includes('"by_columns":true'));
}

/** Errors: argument-invalid, tensor-missing (no such weight in both models), read-failed. */
export async function distributionOf(
  workshop: Workshop,
  reference: OpenedModel,
  quantized: OpenedModel,
  tensor: string,
  { bins = usualBins, signal }: DistributionOptions = {},
): Promise<Distribution> {
  const { instance } = workshop;
  signal?.throwIfAborted();
  if (!Number.isInteger(bins) || bins < 1 || bins > mostBins)
    throw failure('argument-invalid', 'bins', `${bins} is not a whole number from 1 to ${mostBins}`);
  const [left, right] = [reference.indexFor(instance), quantized.indexFor(instance)];
  const { pairs, diagnostics } = instance.call<{ pairs: PairJson[]; diagnostics: Diagnostic[] }>((module) =>
    module.comparison(left, reference.configText, right, quantized.configText, JSON.stringify(comparedTiles)),
  );
  const pair = pairs.find(({ name }) => name === tensor);
  if (!pair) {
    const reason = diagnostics.find(({ where }) => where === tensor)?.message;
    throw failure('tensor-missing', tensor, reason ?? 'is not a weight that both models have');
  }
  const [outer = 1, ...rest] = pair.report.shape;
  const isByRows = hasRows(reference, pair) && pair.report.shape.length > 1;
  const part = {
    kind: 'distribution' as const,
    left: pair.left,
    right: pair.right,
    tiles: pair.tiles,
    channels: isByRows ? outer : 1,
    inner: rest.reduce((product, size) => product * size, 1),
    bins,
  };
  const job = { label: tensor, bytes: pair.bytes, part };
  const { sums, ...found } = await runOne(workshop, [reference, quantized], job, signal);
  return { ...found, channelSqnrDb: isByRows ? channelSqnr(sums) : null };
}

function channelSqnr(sums: Float64Array): Float64Array {
  return Float64Array.from({ length: sums.length / 2 }, (_, channel) => {
    const [xx = 0, dd = 0] = sums.subarray(2 * channel, 2 * channel + 2);
    return dd === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(xx / dd);
  });
}
