// Cosines and ranks of embeddings against a reference's. All are of length 1.

import type { Agreement } from '../api/language_model_types.js';

type Vectors = readonly Float32Array[];

export function cosine(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (const [i, value] of left.entries()) sum += value * (right[i] ?? 0);
  return sum;
}

/** Cosines of all pairs, in order. */
function pairs(vectors: Vectors): number[] {
  return vectors.flatMap((left, i) => vectors.slice(i + 1).map((right) => cosine(left, right)));
}

/** Places in sorted order; equal values share the mean of theirs. */
function ranks(values: readonly number[]): Float64Array {
  const order = [...values.keys()].sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const found = new Float64Array(values.length);
  for (let first = 0; first < order.length; ) {
    let end = first + 1;
    while (end < order.length && values[order[end] ?? 0] === values[order[first] ?? 0]) ++end;
    for (const at of order.slice(first, end)) found[at] = (first + end - 1) / 2;
    first = end;
  }
  return found;
}

function correlation(left: Float64Array, right: Float64Array): number {
  const mean = (left.length - 1) / 2; // of ranks
  let both = 0;
  let ofLeft = 0;
  let ofRight = 0;
  for (const [i, value] of left.entries()) {
    const [a, b] = [value - mean, (right[i] ?? 0) - mean];
    both += a * b;
    ofLeft += a * a;
    ofRight += b * b;
  }
  if (ofLeft === 0 || ofRight === 0) return ofLeft === ofRight ? 1 : 0; // all pairs alike
  return both / Math.sqrt(ofLeft * ofRight);
}

/** Index of the nearest other vector. */
function nearest(vectors: Vectors, text: number): number {
  const own = vectors[text] as Float32Array;
  let best = -1;
  let closest = Number.NEGATIVE_INFINITY;
  for (const [i, other] of vectors.entries()) {
    const found = i === text ? Number.NEGATIVE_INFINITY : cosine(own, other);
    if (found > closest) [best, closest] = [i, found];
  }
  return best;
}

/** At least three texts. */
export function agreementOf(found: Vectors, reference: Vectors): Agreement {
  const cosines = found.map((vector, text) => cosine(vector, reference[text] as Float32Array));
  const leastCosine = cosines.reduce((least, value) => Math.min(least, value), 1);
  const same = found.filter((_, text) => nearest(found, text) === nearest(reference, text));
  return {
    meanCosine: cosines.reduce((sum, value) => sum + value, 0) / cosines.length,
    leastCosine,
    leastText: Math.max(0, cosines.indexOf(leastCosine)),
    rankCorrelation: correlation(ranks(pairs(found)), ranks(pairs(reference))),
    sameNearest: same.length / found.length,
  };
}
