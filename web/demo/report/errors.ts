// The error of each layer of a run, in one kind for the whole run: that of the layer's output where calibration says it,
// else that of its weight.
import type { RunReport, TensorReport } from 'wasmquant';
import { percent } from '../../present/verdict';

export interface LayerError {
  tensor: TensorReport;
  /** Relative: root of the squared error by that of the squares. Null where it is not known. */
  error: number | null;
}

export type ErrorKind = 'output error' | 'weight error';

export interface Errors {
  title: ErrorKind;
  list: LayerError[];
}

export const relativeError = (sqnrDb: number | null | undefined) =>
  sqnrDb === null || sqnrDb === undefined || Number.isNaN(sqnrDb) ? null : 10 ** (-sqnrDb / 20);

/** Several views show the errors of a run, which may have thousands of tensors. */
const known = new WeakMap<RunReport['tensors'], Errors>();

export function errorsOf({ tensors }: Pick<RunReport, 'tensors'>): Errors {
  const errors = known.get(tensors) ?? errorsFound(tensors);
  known.set(tensors, errors);
  return errors;
}

function errorsFound(tensors: RunReport['tensors']): Errors {
  const quantized = tensors.filter(({ error, calibration }) => error || calibration);
  const isOfOutputs = quantized.some(({ calibration }) => calibration);
  return {
    title: isOfOutputs ? 'output error' : 'weight error',
    list: quantized.map((tensor) => ({
      tensor,
      error: isOfOutputs ? relativeError(tensor.calibration?.outputSqnrDb) : relativeError(tensor.error?.sqnrDb),
    })),
  };
}

/** Up to the first an error is good, up to the second visible. */
export const limits: Record<ErrorKind, readonly [number, number]> = {
  'output error': [0.05, 0.15],
  'weight error': [0.05, 0.15],
};

export type Word = 'good' | 'visible' | 'bad';

export function wordOf(title: ErrorKind, error: number): Word {
  const [good, visible] = limits[title];
  return error <= good ? 'good' : error <= visible ? 'visible' : 'bad';
}

export function rangesOf(title: ErrorKind): string {
  const [good, visible] = limits[title];
  return `good up to ${percent(good)}, visible up to ${percent(visible)}`;
}

export const ruleOf = (title: ErrorKind) => `${title}: ${rangesOf(title)}`;
