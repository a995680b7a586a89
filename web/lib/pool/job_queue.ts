// From tasks to jobs. A job is a range of tiles of a large tensor, or several small tensors. Large tensors with observe
// passes get observe jobs first (one, if observing cannot be shared); their states are then merged for the quantize
// jobs. Jobs are in file order, so that output arrives nearly in order.

import type { TensorError } from '../api/types.js';
import type { Job, JobPart, JobResult, PairNumber, TaskNumber, TileKind } from '../worker/jobs.js';
import type { Advance } from './progress.js';
import { ErrorSums } from './report.js';

/** Below it, calls cost more than balance gains. */
const smallestJobBytes = 1024 * 1024;
/** Each tensor of a job, large or small, needs memory in messages on both sides. */
const mostTensors = 256;

interface QuantizeTask {
  quantize: TaskNumber;
  observePasses: number;
  observedInParts: boolean;
  /** Of weights that are observed with it. */
  joinedTiles: number;
}

export interface WorkItem {
  name: string;
  bytes: number;
  tiles: number;
  /** The tensor to quantize, or the pair to compare. */
  task: QuantizeTask | { compare: PairNumber };
  merge(states: Uint8Array[]): Uint8Array;
}

/** An item of which some tiles are done, and not all. */
interface ItemState {
  item: WorkItem;
  sums: ErrorSums;
  /** Sums of early ranges, by first tile. */
  early: Map<number, { last: number; sums: Float64Array }>;
  summedTiles: number;
  observedTiles: number;
  states: Map<number, Uint8Array>;
}

export type TileJob = Job<TileKind>;

interface ReadyJob {
  job: TileJob;
  /** Position of the first tensor, for ordering. */
  order: number;
}

export class Schedule {
  readonly #items: readonly WorkItem[];
  readonly #begun = new Map<number, ItemState>();
  /** Of finished items. */
  readonly #errors: (TensorError | null)[];
  readonly #jobBytes: number;
  readonly #workers: number;
  /** Input bytes not yet cut into jobs. */
  #left: number;
  readonly #ready: ReadyJob[] = [];
  #cursor = 0;
  #unfinished: number;

  /** `jobBytes`: maximum input bytes per job. With several `workers` the last jobs are smaller, to end together. */
  constructor(items: WorkItem[], jobBytes: number, workers = 1) {
    this.#jobBytes = jobBytes;
    this.#workers = workers;
    this.#left = items.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#items = items;
    this.#errors = items.map(() => null);
    this.#unfinished = items.reduce((count, { tiles }) => count + (tiles > 0 ? 1 : 0), 0);
  }

  #state(number: number): ItemState | undefined {
    const item = this.#items[number];
    let state = this.#begun.get(number);
    if (!state && item) {
      const begun = { sums: new ErrorSums(), early: new Map(), summedTiles: 0, observedTiles: 0, states: new Map() };
      state = { item, ...begun };
      this.#begun.set(number, state);
    }
    return state;
  }

  get done(): boolean {
    return this.#unfinished === 0;
  }

  /** The next job; null if all are started or waiting for an observe pass. */
  next(): TileJob | null {
    if (this.#ready.length === 0) this.#expand();
    return this.#ready.shift()?.job ?? null;
  }

  /** Takes a job's result and returns its progress; one of two passes counts half. */
  complete(job: TileJob, result: JobResult<TileKind>): Advance {
    const advance: Advance = { phase: 'read', bytes: 0, tensors: 0, name: job.label };
    for (const [position, part] of job.parts.entries()) {
      const state = this.#state(part.item);
      const partResult = result.parts[position];
      if (!state || !partResult) throw new RangeError('a job came back with parts that it did not have');
      const { item } = state;
      const fraction = (part.last - part.first) / (part.kind === 'run' ? item.tiles : observedTiles(item));
      advance.bytes += item.bytes * fraction * share(item, part);
      advance.name = item.name;
      if (part.kind === 'observe') {
        if (partResult.state) state.states.set(part.first, partResult.state);
        state.observedTiles += part.last - part.first;
        if (state.observedTiles === observedTiles(item)) this.#quantizeObserved(part.item, state);
        continue;
      }
      if (part.kind !== 'compare') advance.phase = 'quantize';
      advance.tensors += this.#addSums(state, part, partResult.sums) ? 1 : 0;
    }
    return advance;
  }

  error(item: number): TensorError | null {
    return this.#errors[item] ?? null;
  }

  /** True once the tensor is finished. */
  #addSums(state: ItemState, { item, first, last }: JobPart<TileKind>, sums: Float64Array): boolean {
    state.early.set(first, { last: Math.min(last, state.item.tiles), sums });
    for (let next = state.early.get(state.summedTiles); next; next = state.early.get(state.summedTiles)) {
      state.sums.add(next.sums);
      state.early.delete(state.summedTiles);
      state.summedTiles = next.last;
    }
    const isFinished = state.summedTiles === state.item.tiles;
    if (!isFinished) return false;
    this.#unfinished -= 1;
    this.#errors[item] = state.sums.result();
    this.#begun.delete(item);
    return true;
  }

  #quantizeObserved(order: number, { item, states }: ItemState): void {
    const ordered = [...states].sort(([a], [b]) => a - b).map(([, state]) => state);
    const merged = ordered.length === 1 && ordered[0] ? ordered[0] : item.merge(ordered);
    states.clear();
    const entries: ReadyJob[] = [];
    for (const [first, last] of this.#ranges(item, item.tiles)) {
      const { task } = item;
      if ('quantize' in task) {
        entries.push({
          order,
          job: this.#job(item, { kind: 'run', ...quantizeWork(item, task, order, first, last), state: merged }),
        });
      }
    }
    const position = this.#ready.findIndex((entry) => entry.order > order);
    this.#ready.splice(position < 0 ? this.#ready.length : position, 0, ...entries);
  }

  #job(item: WorkItem, part: JobPart<TileKind>): TileJob {
    return { label: item.name, bytes: (item.bytes * (part.last - part.first)) / item.tiles, parts: [part] };
  }

  /** Input bytes of the next job: half of each worker's share of the rest (guided self-scheduling). */
  #nextBytes(left: number): number {
    if (this.#workers === 1) return this.#jobBytes;
    return Math.min(this.#jobBytes, Math.max(smallestJobBytes, left / (2 * this.#workers)));
  }

  /** Ranges of the item's first `count` tiles, which may go on to those of joined weights. */
  *#ranges({ bytes, tiles }: WorkItem, count: number): Generator<[first: number, last: number]> {
    const perJob = Math.max(1, Math.floor(this.#nextBytes(Math.max(this.#left, bytes)) / Math.max(1, bytes / tiles)));
    const even = Math.ceil(count / Math.ceil(count / perJob));
    for (let first = 0; first < count; first += even) yield [first, Math.min(count, first + even)];
  }

  /** Makes jobs of the next large tensor, or one job of the next small ones. */
  #expand(): void {
    const small: JobPart<TileKind>[] = [];
    let smallBytes = 0;
    const order = this.#cursor;
    while (this.#cursor < this.#items.length) {
      const item = this.#items[this.#cursor];
      if (!item) break;
      const observed = observedTiles(item);
      const ranges = item.tiles === 0 ? [] : [...this.#ranges(item, observed)];
      const isLarge = ranges.length > 1; // with the tiles of joined weights, also an item of few bytes
      const isFull = small.length === mostTensors || item.bytes + smallBytes > this.#nextBytes(this.#left);
      if ((isLarge || isFull) && small.length > 0) break;
      const number = this.#cursor++;
      this.#left -= item.bytes;
      if (item.tiles === 0) continue;
      if (isLarge) {
        for (const [first, last] of observesWhole(item) ? [[0, observed] as const] : ranges)
          this.#ready.push({ order: number, job: this.#job(item, firstPass(item, number, first, last, true)) });
        return;
      }
      small.push(firstPass(item, number, 0, observed, false));
      smallBytes += item.bytes;
    }
    if (small.length === 0) return;
    const names = small.map((part) => this.#items[part.item]?.name ?? '');
    const label = names.length > 1 ? `${names[0]} and ${names.length - 1} more` : (names[0] ?? '');
    this.#ready.push({ order, job: { label, bytes: smallBytes, parts: small } });
  }
}

/** Tiles of the first pass. */
function observedTiles({ tiles, task }: WorkItem): number {
  return 'quantize' in task ? tiles + task.joinedTiles : tiles;
}

function quantizeWork({ tiles }: WorkItem, task: QuantizeTask, item: number, first: number, last: number) {
  return { item, ...task.quantize, tiles, first, last };
}

/** Whether one session must see the whole tensor before any tile can run. */
function observesWhole({ task }: WorkItem): boolean {
  return 'quantize' in task && task.observePasses > 0 && !task.observedInParts;
}

/** The share of a part in all passes over its tiles. */
function share({ task }: WorkItem, { kind }: JobPart<TileKind>): number {
  if (kind === 'compare' || kind === 'observe-and-run' || 'compare' in task) return 1;
  return (kind === 'observe' ? task.observePasses : 1) / (task.observePasses + 1);
}

/** `isLarge`: running is split into several jobs. */
function firstPass(work: WorkItem, item: number, first: number, last: number, isLarge: boolean): JobPart<TileKind> {
  const { task } = work;
  if ('compare' in task) return { kind: 'compare', item, ...task.compare, first, last };
  const range = quantizeWork(work, task, item, first, last);
  if (task.observePasses === 0) return { kind: 'run', ...range, state: null };
  return { kind: isLarge ? 'observe' : 'observe-and-run', ...range };
}
