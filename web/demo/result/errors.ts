// The error of each layer of a run, in one kind for the whole run: that of the layer's output where calibration says it,
// else that of its weight.
import type { TensorReport } from 'wasmquant';
import type { FinishedRun } from '../run/runs';

export interface LayerError {
  tensor: TensorReport;
  /** Relative: root of the squared error by that of the squares. Null where it is not known. */
  error: number | null;
}

export interface Errors {
  /** `output error` or `weight error`. */
  title: 'output error' | 'weight error';
  list: LayerError[];
}

const relative = (sqnrDb: number | null | undefined) =>
  sqnrDb === null || sqnrDb === undefined || Number.isNaN(sqnrDb) ? null : 10 ** (-sqnrDb / 20);

export function errorsOf({ report }: FinishedRun): Errors {
  const quantized = report.tensors.filter(({ error, calibration }) => error || calibration);
  const isOfOutputs = quantized.some(({ calibration }) => calibration);
  return {
    title: isOfOutputs ? 'output error' : 'weight error',
    list: quantized.map((tensor) => ({
      tensor,
      error: isOfOutputs ? relative(tensor.calibration?.outputSqnrDb) : relative(tensor.error?.sqnrDb),
    })),
  };
}

/** Up to the first an error is good, up to the second visible. */
const limits = { 'output error': [0.05, 0.15], 'weight error': [0.05, 0.15] } as const;

export function wordOf(title: Errors['title'], error: number): 'good' | 'visible' | 'bad' {
  const [good, visible] = limits[title];
  return error <= good ? 'good' : error <= visible ? 'visible' : 'bad';
}

export function ruleOf(title: Errors['title']): string {
  const [good, visible] = limits[title];
  return `${title}: good up to ${100 * good} %, visible up to ${100 * visible} %`;
}
