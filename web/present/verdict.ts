// Words for losses. Each kind of loss has its own rule, which is said where the word stands.
import type { CurveMetric } from 'wasmquant';

export type Verdict = 'good' | 'visible' | 'bad';
export type Kind = CurveMetric['kind'];

/** Up to the first a loss is good, up to the second it is visible. Of bits per byte: relative to the original. */
const limits: Record<Kind, readonly [number, number]> = {
  'bits-per-byte': [0.005, 0.03],
  kld: [0.01, 0.1],
  'embedding-error': [0.01, 0.05],
  'output-error': [0.02, 0.1],
  'weight-error': [0.02, 0.12],
};

/** What is judged: the loss that was added, relative where the original has one. */
export function increaseOf(kind: Kind, loss: number, original: number | null): number {
  return kind === 'bits-per-byte' && original ? loss / original - 1 : loss;
}

export function verdictOf(kind: Kind, increase: number): Verdict {
  const [good, visible] = limits[kind];
  return increase <= good ? 'good' : increase <= visible ? 'visible' : 'bad';
}

/** A tenth of what is good: nobody can see such an increase. */
export const unseenIncrease = (kind: Kind) => limits[kind][0] / 10;

export function percent(share: number): string {
  const value = Math.abs(100 * share);
  const digits = value < 0.095 ? 2 : value < 10 ? 1 : 0;
  return `${value.toFixed(digits)} %`;
}

/** `0.1 % more loss`, `outputs off by 1.9 %`. */
export function lossText(kind: Kind, increase: number): string {
  if (kind === 'kld') return `KLD ${increase.toPrecision(2)}`;
  if (kind === 'embedding-error') return `embeddings ${percent(increase)} apart`;
  if (kind === 'output-error') return `outputs off by ${percent(increase)}`;
  if (kind === 'weight-error') return `weights off by ${percent(increase)}`;
  return increase < unseenIncrease(kind) ? 'no visible loss' : `${percent(increase)} more loss`;
}

/** The rule behind a word, for people who ask. */
export function ruleText(kind: Kind): string {
  const [good, visible] = limits[kind];
  if (kind === 'kld') return `good: up to ${good} nats, visible: up to ${visible}`;
  if (kind === 'embedding-error') return `good: 1 − cosine up to ${percent(good)}, visible: up to ${percent(visible)}`;
  const of = kind === 'bits-per-byte' ? 'more bits per byte' : 'relative error';
  return `good: up to ${percent(good)} ${of}, visible: up to ${percent(visible)}`;
}
