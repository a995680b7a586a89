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
    if (!point.measured) {
      const loss = base + Math.max(0, ratio ?? Number.NaN) * share(i);
      point.loss = Number.isFinite(loss) ? loss : null;
    }
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

/** What is known of a point: losses by sample, or a mean and its standard error. */
type Evidence = { samples: readonly number[]; loss: number; error?: number } | undefined;

/** Difference of two points and its standard error: of pairs of samples, else of two means; infinite for a single sample. */
function differenceOf(worse: Evidence, better: Evidence): { mean: number; error: number } {
  const samples = [worse?.samples ?? [], better?.samples ?? []] as const;
  if (Math.min(samples[0].length, samples[1].length) > 1) return meanDifference(...samples);
  const error = Math.hypot(worse?.error ?? Number.POSITIVE_INFINITY, better?.error ?? Number.POSITIVE_INFINITY);
  return { mean: (worse?.loss ?? 0) - (better?.loss ?? 0), error };
}

/** Neighbours in loss that are closer than two standard errors of their difference, and not equal for all purposes. */
export function undecidedPairs(
  points: readonly CurvePoint[],
  evidence: (point: CurvePoint) => Evidence,
): [string, string][] {
  const byLoss = points.filter(({ measured, loss }) => measured && loss !== null);
  byLoss.sort((a, b) => (a.loss ?? 0) - (b.loss ?? 0));
  return byLoss.slice(1).flatMap((point, i): [string, string][] => {
    const before = byLoss[i] as CurvePoint;
    const [worse, better] = [evidence(point), evidence(before)];
    const { mean, error } = differenceOf(worse, better);
    const sizes = better?.samples.length ? better.samples : [before.loss ?? 0];
    const size = sizes.reduce((sum, each) => sum + Math.abs(each), 0) / sizes.length;
    const isDecided = Math.abs(mean) > 2 * error || Math.abs(mean) + 2 * error < smallShare * size;
    return isDecided ? [] : [[before.scheme, point.scheme]];
  });
}
