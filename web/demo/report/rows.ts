// The rows of the table: the plan joined with the errors of a finished run; searched, sorted, and the worst marked.
import type { Plan, PlannedTensor, RunReport } from 'wasmquant';
import { collapse, type Group } from '../../present/collapse';
import { type ErrorKind, errorsOf, wordOf } from './errors';

export type Row = PlannedTensor & {
  /** Relative, of the kind of all rows; null where it is not known. */
  error: number | null;
  /** Whether its values before and after can be looked at. */
  hasFigures: boolean;
  worst: boolean;
  /** Whether the error is that of another spec than the plan has now. */
  isFormer: boolean;
};
export type SortKey = 'file' | 'name' | 'size' | 'error';
export interface Order {
  key: SortKey;
  descending: boolean;
}

/** The plan's tensors, and what a run found of each. */
export interface Joined {
  kind: ErrorKind;
  tensors: PlannedTensor[];
  errorOf(tensor: PlannedTensor): number | null;
  isMeasured: boolean;
  isWorst(tensor: PlannedTensor): boolean;
  isFormer(tensor: PlannedTensor): boolean;
  /** Made for what is drawn: a large model has thousands of rows. */
  rowOf(tensor: PlannedTensor): Row;
}

/** A run, and whether it was made with what is chosen now. */
export interface Measured {
  report: RunReport;
  isCurrent: boolean;
}

/** The highest tenth is marked, at most five; with fewer tensors than this nothing is marked. */
const leastForWorst = 4;
const mostWorst = 5;

function worstOf(errors: ReadonlyMap<string, number | null>): Set<string> {
  const measured = [...errors]
    .flatMap(([name, error]) => (error ? [{ name, error }] : []))
    .sort((left, right) => right.error - left.error);
  if (measured.length < leastForWorst) return new Set();
  const marked = Math.min(mostWorst, Math.ceil(measured.length / 10));
  return new Set(measured.slice(0, marked).map(({ name }) => name));
}

type Scheme = Pick<PlannedTensor, 'action' | 'spec' | 'stages'>;

/** Numbers of schemes, and what has been found of a spec, which many rows share. */
const schemes = new Map<string, number>();
const schemeOfSpec = new WeakMap<object, number>();

function numberOf(text: string): number {
  const known = schemes.get(text) ?? schemes.size;
  schemes.set(text, known);
  return known;
}

/** Equal for equal schemes. */
function schemeOf({ action, spec, stages }: Scheme): string {
  if (!spec || stages) return `${action} ${numberOf(JSON.stringify([spec, stages]))}`;
  const number = schemeOfSpec.get(spec) ?? numberOf(JSON.stringify(spec));
  schemeOfSpec.set(spec, number);
  return `${action} ${number}`;
}

export function joinRows(plan: Plan, measured: Measured | null): Joined {
  const { title: kind, list } = errorsOf(measured?.report ?? { tensors: [] });
  const errors = new Map(list.map(({ tensor, error }) => [tensor.name, error]));
  const worst = worstOf(errors);
  const found = new Map(measured?.report.tensors.map((tensor) => [tensor.name, tensor]));
  const errorOf = ({ name }: PlannedTensor) => errors.get(name) ?? null;
  const isWorst = ({ name }: PlannedTensor) => worst.has(name);
  const isFormer = (tensor: PlannedTensor) => {
    const of = found.get(tensor.name);
    return measured?.isCurrent === false && of !== undefined && schemeOf(of) !== schemeOf(tensor);
  };
  const rowOf = (tensor: PlannedTensor): Row => {
    const of = found.get(tensor.name);
    return {
      ...tensor,
      error: errorOf(tensor),
      hasFigures: of?.error !== undefined && of.error !== null,
      worst: isWorst(tensor),
      isFormer: isFormer(tensor),
    };
  };
  return { kind, tensors: plan.tensors, isMeasured: measured !== null, errorOf, isWorst, isFormer, rowOf };
}

/** Tensors that one line can stand for, in the order of the first of each. */
export function groupsOf(tensors: PlannedTensor[], { kind, errorOf, isFormer }: Joined): Group<PlannedTensor>[] {
  return collapse(tensors, (tensor) => {
    const { layer, layerType, dtype, shape, reason } = tensor;
    const why = layer === '' ? reason.text : reason.text.replaceAll(layer, '');
    const error = errorOf(tensor);
    const word = error === null ? '' : wordOf(kind, error);
    return [layerType, dtype, shape, schemeOf(tensor), why, word, isFormer(tensor)].join('\n');
  });
}

const collator = new Intl.Collator('en', { numeric: true });

/** Rows without a value sort last in either direction. */
function compare(left: PlannedTensor, right: PlannedTensor, { key, descending }: Order, errorOf: Joined['errorOf']) {
  const sign = descending ? -1 : 1;
  if (key === 'name') return sign * collator.compare(left.name, right.name);
  if (key === 'size') return sign * (left.bytesBefore - right.bytesBefore);
  const [a, b] = [errorOf(left), errorOf(right)];
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return sign * (a - b);
}

/** Those that match, in order. */
export function selectTensors({ tensors, errorOf }: Joined, search: string, order: Order): PlannedTensor[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && order.key === 'file') return tensors;
  const found = tensors.filter((tensor) => {
    const { name, layerType, dtype, spec, action } = tensor;
    const text = `${name} ${layerType} ${dtype} ${spec?.dtype ?? ''} ${action}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return order.key === 'file' ? found : found.sort((left, right) => compare(left, right, order, errorOf));
}
