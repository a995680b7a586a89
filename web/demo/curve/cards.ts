// The three cards: safe, balanced, smallest. Before anything is measured they are usual schemes; then those that the curve says.
import { computed, effect } from '@preact/signals';
import type { OutputFormat, Speed } from 'wasmquant';
import { increaseOf, type Kind, lossText, unseenIncrease, type Verdict, verdictOf } from '../../present/verdict';
import { stage } from '../app/stage';
import { type CardName, choice } from '../configure/choice';
import { usualScheme } from '../configure/reach';
import { sizeOf } from '../configure/sizes';
import { opened } from '../open/opened';
import { run } from '../run/runs';
import { cardsOf, isEnoughSmaller, saysNothing } from './card-choice';
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
  bytes: number;
  loss: LossNote | null;
  /** Null: not measured. */
  speed: Speed | null;
}

export function noteOf(point: Point): LossNote | null {
  const now = curve.value;
  if (!now || point.loss === null) return null;
  const { kind } = now.metric;
  if (kind === 'bits-per-byte' && now.original.loss === null) return null;
  const increase = increaseOf(kind, point.loss, now.original.loss);
  return { text: lossText(kind, increase), verdict: verdictOf(kind, increase), isMeasured: point.measured, kind };
}

/** The points smaller than the original whose loss is known. */
const judgedPoints = computed(() => {
  const now = curve.value;
  if (!now) return [];
  return points.value.flatMap((point) => {
    const note = noteOf(point);
    const increase = increaseOf(now.metric.kind, point.loss ?? 0, now.original.loss);
    const { bytes } = point;
    const unseen = unseenIncrease(now.metric.kind);
    return note && bytes < now.original.bytes ? [{ point, bytes, increase, unseen, verdict: note.verdict }] : [];
  });
});

/** Whether outputs were measured on inputs made up from type and shape, and are bad with every scheme. */
export const isMeasuredInVain = computed(
  () => curve.value?.metric.kind === 'output-error' && saysNothing(judgedPoints.value),
);

/** By measurement or estimate; null until all losses are known, and where they say nothing. */
function measuredCards(): Map<CardName, Point> | null {
  const now = curve.value;
  if (!now || now.runtime === 'cost' || isMeasuredInVain.value) return null;
  const judged = judgedPoints.value;
  const isComplete = points.value.every(({ loss, reason }) => loss !== null || reason !== undefined);
  if (judged.length === 0 || !isComplete || now.status === 'running') return null;
  return new Map([...cardsOf(judged)].map(([name, { point }]) => [name, point]));
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
    const last = found.at(-1);
    if (last && !isEnoughSmaller(bytes, last.bytes) && format !== 'fake-quantized') continue;
    const point = points.value.find(({ id }) => id === pointId({ preset, format, configText: null }));
    const measured = { loss: point ? noteOf(point) : null, speed: point?.speed ?? null };
    found.push({ name, preset, format, configText: null, bytes, ...measured });
  }
  return found;
}

export const cards = computed<Card[]>(() => {
  const measured = measuredCards();
  if (!measured) return usualCards();
  return [...measured].map(([name, point]) => {
    const { scheme, format, configText, bytes, speed = null } = point;
    return { name, preset: scheme, format, configText, bytes, loss: noteOf(point), speed };
  });
});

const isRunning = computed(() => run.value.state === 'running');

// The chosen card stays chosen when measurements say that it belongs to another scheme.
effect(() => {
  const now = choice.value;
  if (now.card === null || stage.value !== 'choose' || isRunning.value) return;
  const card = cards.value.find(({ name }) => name === now.card) ?? cards.value.at(-1);
  if (!card || pointId({ ...card }) === pointId(now)) return;
  const { preset, format, configText } = card;
  choice.value = { ...now, card: card.name, preset, format, configText };
});

export function chooseCard({ name, preset, format, configText }: Card): void {
  choice.value = { ...choice.value, card: name, preset, format, configText };
}

export function choosePoint({ scheme, format, configText }: Point): void {
  const card = cards.value.find((each) => pointId({ ...each }) === pointId({ preset: scheme, format, configText }));
  choice.value = { ...choice.value, card: card?.name ?? null, preset: scheme, format, configText };
}
