// The three cards: safe, balanced, smallest. Before anything is measured they are usual schemes; then those that the curve says.
import { computed, effect } from '@preact/signals';
import type { OutputFormat } from 'wasmquant';
import { increaseOf, type Kind, lossText, type Verdict, verdictOf } from '../../present/verdict';
import { stage } from '../app/stage';
import { type CardName, choice } from '../configure/choice';
import { usualScheme } from '../configure/reach';
import { sizeOf } from '../configure/sizes';
import { opened } from '../open/opened';
import { run } from '../run/runs';
import { curve, type Point, pointId, points } from './state';

/** What a loss says: the words, and whether it was measured. */
export interface LossNote {
  text: string;
  verdict: Verdict;
  isMeasured: boolean;
  kind: Kind;
}

export interface Card {
  name: CardName;
  preset: string;
  format: OutputFormat;
  configText: string | null;
  weighted: boolean;
  bytes: number;
  loss: LossNote | null;
}

export function noteOf(point: Point): LossNote | null {
  const now = curve.value;
  if (!now || point.loss === null) return null;
  const { kind } = now.metric;
  if (kind === 'bits-per-byte' && now.original.loss === null) return null;
  const increase = increaseOf(kind, point.loss, now.original.loss);
  return { text: lossText(kind, increase), verdict: verdictOf(kind, increase), isMeasured: point.measured, kind };
}

interface Judged {
  point: Point;
  note: LossNote;
  increase: number;
}

/** Between the safe and the smallest: what gives most for what it costs, both on scales from 0 to 1. */
function between(judged: Judged[], safe: Judged, smallest: Judged): Judged | undefined {
  const spanBytes = Math.log(safe.point.bytes / smallest.point.bytes) || 1;
  const spanLoss = smallest.increase - safe.increase || 1;
  const cost = ({ point, increase }: Judged) =>
    Math.log(point.bytes / smallest.point.bytes) / spanBytes + (increase - safe.increase) / spanLoss;
  return judged
    .filter(
      ({ point, increase }) =>
        point.bytes < safe.point.bytes && point.bytes > smallest.point.bytes && increase < smallest.increase,
    )
    .sort((a, b) => cost(a) - cost(b))[0];
}

/** By measurement or estimate; null until all losses are known. */
function measuredCards(): Map<CardName, Point> | null {
  const now = curve.value;
  if (!now || now.runtime === 'cost') return null;
  const judged = points.value.flatMap((point) => {
    const note = noteOf(point);
    const increase = increaseOf(now.metric.kind, point.loss ?? 0, now.original.loss);
    return note && point.bytes < now.original.bytes ? [{ point, note, increase }] : [];
  });
  const isComplete = points.value.every(({ loss, reason }) => loss !== null || reason !== undefined);
  if (judged.length === 0 || !isComplete || now.status === 'running') return null;
  const bySize = judged.toSorted((a, b) => a.point.bytes - b.point.bytes);
  const safe =
    bySize.find(({ note }) => note.verdict === 'good') ?? bySize.toSorted((a, b) => a.increase - b.increase)[0];
  const smallest = bySize.find(({ note }) => note.verdict !== 'bad') ?? safe;
  if (!safe || !smallest) return null;
  const chosen = new Map<CardName, Point>([['safe', safe.point]]);
  const middle = between(bySize, safe, smallest);
  if (middle) chosen.set('balanced', middle.point);
  if (smallest !== safe) chosen.set(middle ? 'smallest' : 'balanced', smallest.point);
  return chosen;
}

const cardNames: readonly CardName[] = ['safe', 'balanced', 'smallest'];

function usualCards(): Card[] {
  const model = opened.value?.model;
  if (!model) return [];
  const { runtime } = choice.value;
  const found: Card[] = [];
  for (const name of cardNames) {
    const usual = usualScheme(runtime, name, model, sizeOf);
    if (!usual) continue;
    const { preset, format, totals } = usual;
    const bytes = totals.bytesAfter;
    // Each is smaller than the one before it, or it is none.
    const last = found.at(-1);
    if (last && last.bytes <= bytes && format !== 'fake-quantized') continue;
    const point = points.value.find(({ id }) => id === pointId({ preset, format, configText: null, weighted: false }));
    found.push({ name, preset, format, configText: null, weighted: false, bytes, loss: point ? noteOf(point) : null });
  }
  return found;
}

export const cards = computed<Card[]>(() => {
  const measured = measuredCards();
  if (!measured) return usualCards();
  return [...measured].map(([name, point]) => {
    const { scheme, format, configText, weighted, bytes } = point;
    return { name, preset: scheme, format, configText, weighted, bytes, loss: noteOf(point) };
  });
});

const isRunning = computed(() => run.value.state === 'running');

// The chosen card stays chosen when measurements say that it belongs to another scheme.
effect(() => {
  const now = choice.value;
  if (now.card === null || stage.value !== 'choose' || isRunning.value) return;
  const card = cards.value.find(({ name }) => name === now.card) ?? cards.value.at(-1);
  if (!card || pointId({ ...card }) === pointId(now)) return;
  const { preset, format, configText, weighted } = card;
  choice.value = { ...now, card: card.name, preset, format, configText, weighted };
});

export function chooseCard({ name, preset, format, configText, weighted }: Card): void {
  choice.value = { ...choice.value, card: name, preset, format, configText, weighted };
}

export function choosePoint({ scheme, format, configText, weighted }: Point): void {
  const card = cards.value.find(
    (each) => pointId({ ...each }) === pointId({ preset: scheme, format, configText, weighted }),
  );
  choice.value = { ...choice.value, card: card?.name ?? null, preset: scheme, format, configText, weighted };
}
