// Round numbers along the axes of a plot, and their labels, which say exactly these numbers.
import type { CurveMetric } from 'wasmquant';
import { exactBytesText } from './units.js';

/** 1, 2 or 5 times a power of ten: at least so much that `span` has no more than `count` steps. */
export function stepFor(span: number, count: number): number {
  const rough = span / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
}

/** Multiples of `step` in [from, to]. */
export function multiples(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

/** In each power of ten of a logarithmic axis of sizes. */
const niceSizes = [1, 1.5, 2, 3, 5, 7];

/** Sizes in [low, high] that stand far enough apart; multiples of a step where there is room for one nice size at most. */
export function sizeTicks(low: number, high: number, isApart: (left: number, right: number) => boolean): number[] {
  const powers = multiples(Math.floor(Math.log10(low)), Math.log10(high), 1).map((exponent) => 10 ** exponent);
  const nice = powers.flatMap((power) => niceSizes.map((factor) => factor * power));
  const apart = (sizes: number[]) => {
    const taken: number[] = [];
    for (const size of sizes.filter((each) => each >= low && each <= high)) {
      const last = taken.at(-1);
      if (last === undefined || isApart(last, size)) taken.push(size);
    }
    return taken;
  };
  const found = apart(nice);
  return found.length > 1 ? found : apart(multiples(low, high, stepFor(high - low, 4)));
}

/** `1.5 MB`, `100 MB`. */
export const sizeTickText = exactBytesText;

const shares: ReadonlySet<CurveMetric['kind']> = new Set(['embedding-error', 'output-error', 'weight-error']);

/** A multiple of `step`, with the digits that the step needs: `1.50`, `2 %`. */
export function lossTickText(kind: CurveMetric['kind'], loss: number, step: number): string {
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return shares.has(kind) ? `${(100 * loss).toFixed(Math.max(0, digits - 2))} %` : loss.toFixed(digits);
}
