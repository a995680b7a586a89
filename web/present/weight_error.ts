/** The error of a run's weights as one number. */
import type { RunReport } from 'wasmquant';

/** Relative error of the quantized weights: the root of the sum of squared errors by that of squares. */
export function weightError({ tensors }: Pick<RunReport, 'tensors'>): number | null {
  let [errors, squares] = [0, 0];
  for (const { error, calibration, shape } of tensors) {
    if (calibration) return null; // weights that were rescaled on purpose
    if (!error || !Number.isFinite(error.sqnrDb)) continue;
    const sum = error.mse * shape.reduce((product, size) => product * size, 1);
    errors += sum;
    squares += sum * 10 ** (error.sqnrDb / 10);
  }
  return squares > 0 ? Math.sqrt(errors / squares) : null;
}
