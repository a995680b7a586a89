// Statistics of a model's divergence from a reference, defined as llama-perplexity --kl-divergence does
// (tools/perplexity/perplexity.cpp of llama.cpp).

import type { Divergence } from '../api/types.js';
import { valuesPerPosition } from '../worker/jobs.js';

/** Mean and its standard error, sqrt((mean of x^2 - mean^2) / (n - 1)); of one value the error is 0. */
function meanOf(values: Float64Array): { mean: number; error: number } {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count;
  return { mean, error: count > 1 ? Math.sqrt(variance / (count - 1)) : 0 };
}

/** Between the two nearest of the n sorted values: fraction * (n - 1) is a position among them. */
function percentile(sorted: Float64Array, fraction: number): number {
  const at = fraction * (sorted.length - 1);
  const below = Math.floor(at);
  const [low = Number.NaN, high = low] = sorted.subarray(below, below + 2);
  return low + (at - below) * (high - low);
}

/** `values`: `valuesPerPosition` for each scored position, at least one. */
export function divergenceOf(values: readonly number[]): Divergence {
  const column = (of: (values: readonly number[]) => number) =>
    Float64Array.from({ length: values.length / valuesPerPosition }, (_, position) =>
      of(values.slice(position * valuesPerPosition, (position + 1) * valuesPerPosition)),
    );
  const kld = column(([value = 0]) => value);
  const { mean: meanKld, error: meanKldError } = meanOf(kld);
  const ratio = meanOf(column(([, loss = 0, reference = 0]) => loss - reference));
  const top = meanOf(column(([, , , same = 0]) => same));
  const sorted = kld.sort();
  return {
    meanKld,
    meanKldError,
    medianKld: percentile(sorted, 0.5),
    kld99: percentile(sorted, 0.99),
    kld999: percentile(sorted, 0.999),
    maxKld: percentile(sorted, 1),
    sameTop: top.mean,
    sameTopError: top.error,
    logPerplexityRatio: ratio.mean,
    logPerplexityRatioError: ratio.error,
    referencePerplexity: Math.exp(meanOf(column(([, , reference = 0]) => reference)).mean),
  };
}
