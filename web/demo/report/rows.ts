// The rows of the table: the plan joined with the errors of a finished run; searched, sorted, and the worst marked.
import type { Plan, PlannedTensor, Report, TensorError } from 'wasmquant';

export type Row = PlannedTensor & { error: TensorError | null; worst: boolean };
export type SortKey = 'file' | 'name' | 'size' | 'mse' | 'sqnr';
export interface Order {
  key: SortKey;
  descending: boolean;
}

/** The lowest tenth is marked, at most five; with fewer tensors than this nothing is marked. */
const leastForWorst = 4;
const mostWorst = 5;

function worstNames(report: Report | null): Set<string> {
  const measured = (report?.tensors ?? [])
    .flatMap(({ name, error }) => (error && Number.isFinite(error.sqnrDb) ? [{ name, sqnrDb: error.sqnrDb }] : []))
    .sort((left, right) => left.sqnrDb - right.sqnrDb);
  if (measured.length < leastForWorst) return new Set();
  const marked = Math.min(mostWorst, Math.ceil(measured.length / 10));
  return new Set(measured.slice(0, marked).map(({ name }) => name));
}

export function joinRows(plan: Plan, report: Report | null): Row[] {
  const errors = new Map(report?.tensors.map(({ name, error }) => [name, error]));
  const worst = worstNames(report);
  return plan.tensors.map((tensor) => {
    return { ...tensor, error: errors.get(tensor.name) ?? null, worst: worst.has(tensor.name) };
  });
}

const collator = new Intl.Collator('en', { numeric: true });

/** Rows without a value sort last in either direction. */
function compare(left: Row, right: Row, { key, descending }: Order): number {
  const sign = descending ? -1 : 1;
  if (key === 'name') return sign * collator.compare(left.name, right.name);
  if (key === 'size') return sign * (left.bytesBefore - right.bytesBefore);
  if (!left.error || !right.error) return Number(!left.error) - Number(!right.error);
  const difference = key === 'mse' ? left.error.mse - right.error.mse : left.error.sqnrDb - right.error.sqnrDb;
  return Number.isNaN(difference) ? 0 : sign * difference;
}

export function selectRows(rows: Row[], search: string, order: Order): Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text = `${row.name} ${row.layerType} ${row.dtype} ${row.spec?.dtype ?? ''} ${row.action}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return order.key === 'file' ? found : found.sort((left, right) => compare(left, right, order));
}
