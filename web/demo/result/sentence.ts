// A run in a sentence, and its details in a line.
import { speedText } from '../../present/speed_text';
import { bytesText, durationText } from '../../present/units';
import { increaseOf, type Kind, lossText, percent, type Verdict, verdictOf } from '../../present/verdict';
import { weightError } from '../../present/weight_error';
import { noteOf } from '../curve/cards';
import { curve, pointOf } from '../curve/state';
import { losses } from '../improve/better';
import { measured } from '../quality/measurements';
import type { FinishedRun } from '../run/runs';
import { outputErrors, speeds } from './outputs';

export interface RunLoss {
  kind: Kind;
  /** Relative where the original has a loss. */
  increase: number;
  /** `bits per byte 1.5088 → 1.5106 on 16 windows of text`. */
  detail: string;
  /** Whether inputs were made up: their outputs may say little of real ones. */
  isOfMadeUp?: true;
}

/** What a run costs, as it was measured last; null: not measured. */
export function lossOf(done: FinishedRun): RunLoss | null {
  const better = losses.value.find(({ run }) => run === done.number);
  const bits = (original: number, loss: number, windows: number): RunLoss => ({
    kind: 'bits-per-byte',
    increase: increaseOf('bits-per-byte', loss, original),
    detail: `bits per byte ${original.toFixed(4)} → ${loss.toFixed(4)} on ${windows} windows of text`,
  });
  if (better) return bits(better.original, better.loss, better.windows);
  const [before, after] = [measured(done.model, null), measured(done.model, done.number)];
  if (before?.bitsPerByte && after?.bitsPerByte) return bits(before.bitsPerByte, after.bitsPerByte, after.sequences);
  const outputs = outputErrors.value.find(({ run }) => run === done.number);
  if (outputs)
    return {
      kind: 'output-error',
      increase: outputs.error,
      ...(outputs.areGiven
        ? { detail: `outputs compared on ${outputs.inputs} of your inputs` }
        : {
            isOfMadeUp: true,
            detail: `outputs off by ${percent(outputs.error)} on ${outputs.inputs} inputs made up from type and shape, which may say little about real ones: give yours under “Calibrate and measure”`,
          }),
    };
  const point = pointOf(done.choice);
  const now = curve.value;
  if (!point?.measured || !now || point.loss === null) return null;
  const { kind, windows = 0 } = now.metric;
  if (kind === 'output-error')
    return {
      kind,
      increase: point.loss,
      isOfMadeUp: true,
      detail: `outputs off by ${percent(point.loss)} on ${windows} inputs made up from type and shape`,
    };
  if (kind === 'bits-per-byte') return bits(now.original.loss ?? 0, point.loss, windows);
  const detail = kind === 'weight-error' ? 'error of the weights' : (noteOf(point)?.text ?? '');
  return { kind, increase: point.loss, detail };
}

/** `94 % of the loss of plain rounding recovered`; '' where there is no such number. */
export function recoveredText(done: FinishedRun): string {
  const found = losses.value.find(({ run }) => run === done.number);
  if (!found || found.plain === null || found.plain <= found.original) return '';
  const share = (found.plain - found.loss) / (found.plain - found.original);
  if (share <= 0) return 'calibration recovered nothing of the loss of plain rounding';
  return `${Math.min(100, Math.round(100 * share))} % of the loss of plain rounding recovered`;
}

function sizeText(before: number, after: number): string {
  if (Math.abs(after / before - 1) < 0.005) return 'The same size';
  return after < before ? `${(before / after).toFixed(1)}× smaller` : `${(after / before).toFixed(2)}× larger`;
}

export interface Sentence {
  headline: string;
  details: string[];
  verdict: Verdict | null;
}

export function sentenceOf(done: FinishedRun): Sentence {
  const { totals, durationMs, reused } = done.report;
  const { bytesBefore, bytesAfter, quantized } = totals;
  const loss = lossOf(done);
  const isLarger = bytesAfter > bytesBefore * 1.005;
  const headline = done.report.tensors.every(({ action }) => action === 'copy')
    ? quantized > 0
      ? 'Nothing to do: its tensors have these types already, so this is a copy'
      : 'Nothing was quantized: this is a copy'
    : [sizeText(bytesBefore, bytesAfter), loss && !loss.isOfMadeUp && lossText(loss.kind, Math.max(0, loss.increase))]
        .filter(Boolean)
        .join(', ');
  const speed = speeds.value.find(({ run }) => run === done.number)?.speed ?? pointOf(done.choice)?.speed;
  const error = loss ? null : weightError(done.report);
  const details = [
    `${bytesText(bytesBefore)} → ${bytesText(bytesAfter)}`,
    loss?.detail ?? 'loss not measured',
    error !== null && `quantized weights off by ${percent(error)}`,
    speed && speedText(speed),
    recoveredText(done),
    `${durationText(durationMs)}${reused ? `, ${reused} tensors kept` : ''}`,
  ].filter((text) => typeof text === 'string' && text !== '') as string[];
  const verdict = isLarger ? 'bad' : loss && !loss.isOfMadeUp ? verdictOf(loss.kind, loss.increase) : null;
  return { headline, details, verdict };
}
