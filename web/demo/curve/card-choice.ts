// Which sizes the cards offer: only those whose saving is worth what they lose more than a larger one.
import type { CardName } from '../configure/choice';

export interface Candidate {
  bytes: number;
  /** The loss that was added; may be below 0 by chance. */
  increase: number;
  /** Below this, losses of its kind are alike. */
  unseen: number;
  verdict: 'good' | 'visible' | 'bad';
}

/** A card is so much smaller than the one before it: at most 95 % of its bytes. */
export const leastSaving = 0.05;

/**
 * Twice the loss has to save 5 %, four times the loss 10 %, and so on: log2(loss) + log(bytes) / -log(95 %) must not grow. It is a sum, so
 * what is worth it compared with a neighbour is worth it compared with all others. Losses that nobody can see are alike.
 */
const cost = ({ bytes, increase, unseen }: Candidate) =>
  Math.log2(Math.max(increase, unseen)) + Math.log(bytes) / -Math.log(1 - leastSaving);

/** Largest first, without those that a larger one makes pointless, or that are larger and no better than another. */
export function worthwhile<Each extends Candidate>(candidates: readonly Each[]): Each[] {
  const isBeaten = (one: Each) =>
    candidates.some(
      (other) =>
        other !== one &&
        other.bytes <= one.bytes &&
        other.increase <= one.increase &&
        (other.bytes < one.bytes || other.increase < one.increase),
    );
  const kept: Each[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates.filter((one) => !isBeaten(one)).sort((a, b) => b.bytes - a.bytes)) {
    if (cost(candidate) > least + 1e-9) continue;
    least = cost(candidate);
    if (kept.at(-1)?.bytes !== candidate.bytes) kept.push(candidate);
  }
  return kept;
}

/** Where even the best scheme is bad on inputs that were made up, these say nothing about the model. */
export const saysNothing = (candidates: readonly Candidate[]) =>
  candidates.length > 0 && candidates.every(({ verdict }) => verdict === 'bad');

export const isEnoughSmaller = (bytes: number, than: number) => bytes <= (1 - leastSaving) * than;

/** Between the safe and the smallest: what gives most for what it costs, both on scales from 0 to 1. */
function between<Each extends Candidate>(kept: readonly Each[], safe: Each, smallest: Each): Each | undefined {
  const spanBytes = Math.log(safe.bytes / smallest.bytes) || 1;
  const spanLoss = smallest.increase - safe.increase || 1;
  const price = ({ bytes, increase }: Each) =>
    Math.log(bytes / smallest.bytes) / spanBytes + (increase - safe.increase) / spanLoss;
  return kept
    .filter(({ bytes }) => isEnoughSmaller(bytes, safe.bytes) && isEnoughSmaller(smallest.bytes, bytes))
    .sort((a, b) => price(a) - price(b))[0];
}

/** Safe: the smallest whose loss is good, else the one that loses least. Each other card is at least 5 % smaller than the one before it. */
export function cardsOf<Each extends Candidate>(candidates: readonly Each[]): Map<CardName, Each> {
  const kept = worthwhile(candidates);
  const chosen = new Map<CardName, Each>();
  const safe = kept.findLast(({ verdict }) => verdict === 'good') ?? kept[0];
  if (!safe) return chosen;
  chosen.set('safe', safe);
  const smallest = kept.findLast(({ verdict }) => verdict !== 'bad') ?? safe;
  if (!isEnoughSmaller(smallest.bytes, safe.bytes)) return chosen;
  const middle = between(kept, safe, smallest);
  if (middle) chosen.set('balanced', middle);
  return chosen.set(middle ? 'smallest' : 'balanced', smallest);
}
