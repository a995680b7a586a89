// Chooses one size per item to minimize the total loss under a byte limit, or the reverse: from the smallest sizes on,
// takes the step that saves most loss per byte. Steps follow the lower convex hull of (bytes, loss), so the greedy
// order is the Lagrangian optimum's (Everett 1963), less than one step short.

export interface BudgetItem {
  /** Null: not available. */
  choices: readonly ({ bytes: number; loss: number } | null)[];
}

interface Step {
  item: number;
  /** Position in the item's hull. */
  to: number;
  gain: number;
}

/** Choices on the lower convex hull, by bytes; the first is the smallest. */
export function hullOf(choices: BudgetItem['choices']): number[] {
  const points = choices.flatMap((choice, index) => (choice ? [{ ...choice, index }] : []));
  points.sort((a, b) => a.bytes - b.bytes || a.loss - b.loss);
  const hull: typeof points = [];
  for (const point of points) {
    const last = hull[hull.length - 1];
    if (last && point.loss >= last.loss) continue;
    for (;;) {
      const [a, b] = hull.slice(-2);
      if (!a || !b || (a.loss - b.loss) * (point.bytes - b.bytes) > (b.loss - point.loss) * (b.bytes - a.bytes)) break;
      hull.pop();
    }
    hull.push(point);
  }
  return hull.map(({ index }) => index);
}

/** The index of each item's choice. `limit.bytes`: an upper limit if any choice fits; `limit.loss`: a goal. */
export function allocateBits(items: readonly BudgetItem[], limit: { bytes?: number; loss?: number }): number[] {
  const hulls = items.map(({ choices }) => hullOf(choices));
  const at = hulls.map(() => 0);
  const choice = (item: number, position: number) => {
    const found = items[item]?.choices[hulls[item]?.[position] ?? -1];
    if (!found) throw new RangeError(`item ${item} has no choice`);
    return found;
  };
  let bytes = 0;
  let loss = 0;
  const steps: Step[] = [];
  hulls.forEach((hull, item) => {
    bytes += choice(item, 0).bytes;
    loss += choice(item, 0).loss;
    for (let to = 1; to < hull.length; ++to) {
      const [from, next] = [choice(item, to - 1), choice(item, to)];
      steps.push({ item, to, gain: (from.loss - next.loss) / (next.bytes - from.bytes) });
    }
  });
  steps.sort((a, b) => b.gain - a.gain || a.item - b.item || a.to - b.to);
  for (const { item, to } of steps) {
    if (limit.loss !== undefined && loss <= limit.loss) break;
    if (at[item] !== to - 1) continue; // an earlier step of this item did not fit
    const [from, next] = [choice(item, to - 1), choice(item, to)];
    if (limit.bytes !== undefined && bytes + next.bytes - from.bytes > limit.bytes) continue;
    bytes += next.bytes - from.bytes;
    loss += next.loss - from.loss;
    at[item] = to;
  }
  return hulls.map((hull, item) => hull[at[item] ?? 0] ?? 0);
}
