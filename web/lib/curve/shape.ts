// What points say when they are compared: the frontier, estimates, and whether samples decide their order.

import type { Curve, CurvePoint } from '../api/types.js';

/** Marks the points that nothing beats in size and loss. */
export function markFrontier({ original, points }: Curve): void {
  const all = [original, ...points];
  for (const point of points)
    point.onFrontier =
      point.loss !== null &&
      !all.some(
        (other) =>
          other !== point &&
          other.loss !== null &&
          point.loss !== null &&
          other.bytes <= point.bytes &&
          other.loss <= point.loss &&
          (other.bytes < point.bytes || other.loss < point.loss),
      );
}

/** Losses that grow as the squares of the weights' errors do (of predictions), or as the errors (of outputs and weights). */
const powers: Record<Curve['metric']['kind'], 1 | 2> = {
  'bits-per-byte': 2,
  kld: 2,
  'embedding-error': 2,
  'output-error': 1,
  'weight-error': 1,
};

/**
 * Losses of points that are not measured, from the error of some of their weights: in proportion to it, by the median of the points that
 * are measured. `errors`: relative errors of weights, in the order of the points.
 */
export function estimate({ metric, original, points }: Curve, errors: readonly number[]): void {
  const base = original.loss ?? 0;
  const share = (i: number) => (errors[i] ?? 0) ** powers[metric.kind];
  const ratios = points
    .flatMap(({ measured, loss }, i) => (measured && loss !== null && share(i) > 0 ? [(loss - base) / share(i)] : []))
    .sort((a, b) => a - b);
  const ratio = ratios[Math.floor(ratios.length / 2)];
  for (const [i, point] of points.entries())
    if (!point.measured) point.loss = ratio === undefined ? null : base + Math.max(0, ratio) * share(i);
}

/** Mean of differences, and its standard error. */
export function meanDifference(a: readonly number[], b: readonly number[]): { mean: number; error: number } {
  const count = Math.min(a.length, b.length);
  const differences = Array.from({ length: count }, (_, i) => (a[i] ?? 0) - (b[i] ?? 0));
  const mean = differences.reduce((sum, each) => sum + each, 0) / count;
  const variance = differences.reduce((sum, each) => sum + (each - mean) ** 2, 0) / Math.max(1, count - 1);
  return { mean, error: Math.sqrt(variance / count) };
}

/** Differences below this share of the loss matter to no one. */
const smallShare = 0.001;

/** Neighbours in loss that are closer than two standard errors of their difference, and not equal for all purposes. */
export function undecidedPairs(
  points: readonly CurvePoint[],
  samples: (point: CurvePoint) => readonly number[],
): [string, string][] {
  const byLoss = points.filter(({ measured, loss }) => measured && loss !== null);
  byLoss.sort((a, b) => (a.loss ?? 0) - (b.loss ?? 0));
  return byLoss.slice(1).flatMap((point, i): [string, string][] => {
    const before = byLoss[i] as CurvePoint;
    const [worse, better] = [samples(point), samples(before)];
    if (worse.length < 2) return [];
    const { mean, error } = meanDifference(worse, better);
    const size = better.reduce((sum, each) => sum + Math.abs(each), 0) / better.length;
    const isDecided = Math.abs(mean) > 2 * error || Math.abs(mean) + 2 * error < smallShare * size;
    return isDecided ? [] : [[before.scheme, point.scheme]];
  });
}
