// What presets make of the open model, planned one after another while the page is idle: a plan of a large model takes
// a while, and there are many presets.
import { signal } from '@preact/signals';
import { type Model, type OutputFormat, type Plan, QuantizationError, type Totals } from 'wasmquant';
import { opened } from '../open/opened';
import { sizedPlan } from './planner';

/** `totals` is null if the model cannot have the preset in that format, and `reason` says why. */
export interface Size {
  totals: Totals | null;
  reason: string;
}

interface Known {
  model: Model;
  sizes: ReadonlyMap<string, Size>;
}

const known = signal<Known | null>(null);
let waiting: { preset: string; format: OutputFormat }[] = [];
let isScheduled = false;

const keyOf = (preset: string, format: OutputFormat) => `${preset} ${format}`;

function sizeOfPlan({ totals, diagnostics }: Omit<Plan, 'tensors'>): Size {
  const wrong = diagnostics.find(({ severity }) => severity === 'error');
  return wrong ? { totals: null, reason: wrong.message } : { totals, reason: '' };
}

const refused = (error: unknown): Size => ({
  totals: null,
  reason: error instanceof QuantizationError ? error.detail : String(error),
});

function keep(model: Model, preset: string, format: OutputFormat, size: Size): Size {
  const sizes = known.peek()?.model === model ? known.peek()?.sizes : undefined;
  known.value = { model, sizes: new Map(sizes).set(keyOf(preset, format), size) };
  return size;
}

function made(model: Model, preset: string, format: OutputFormat): Size | Promise<Size> {
  const take = (size: Size) => keep(model, preset, format, size);
  try {
    const plan = sizedPlan(model, preset, { format });
    if (!(plan instanceof Promise)) return take(sizeOfPlan(plan));
    return plan.then(sizeOfPlan, refused).then(take);
  } catch (error) {
    return take(refused(error));
  }
}

/** Null while it is not known. */
export function sizeOf(preset: string, format: OutputFormat): Size | null {
  const now = known.value;
  return now && now.model === opened.value?.model ? (now.sizes.get(keyOf(preset, format)) ?? null) : null;
}

/** Plans, unless it is known. */
function sizeNow(model: Model, preset: string, format: OutputFormat): Size | Promise<Size> {
  const now = known.peek();
  return (now?.model === model ? now.sizes.get(keyOf(preset, format)) : undefined) ?? made(model, preset, format);
}

export type SizeFor = (preset: string, format: OutputFormat) => Size | null;

/** Stands for a size that a worker is asked for. */
class Awaited {
  readonly size: Promise<Size>;
  constructor(size: Promise<Size>) {
    this.size = size;
  }
}

/** Decides by sizes, which are planned when it asks for them. It is called anew for each that had to be waited for. */
export function whenSized<T>(model: Model, decide: (sizeFor: SizeFor) => T): T | Promise<T> {
  try {
    return decide((preset, format) => {
      const size = sizeNow(model, preset, format);
      if (size instanceof Promise) throw new Awaited(size);
      return size;
    });
  } catch (thrown) {
    if (!(thrown instanceof Awaited)) throw thrown;
    return thrown.size.then(() => whenSized(model, decide));
  }
}

/** Safari has no idle callbacks. */
function whenIdle(use: () => void): void {
  if ('requestIdleCallback' in window) window.requestIdleCallback(use, { timeout: 500 });
  else setTimeout(use, 20);
}

function next(): void {
  isScheduled = false;
  const model = opened.peek()?.model;
  const job = waiting.shift();
  if (!model || !job) return;
  const size = sizeNow(model, job.preset, job.format);
  if (size instanceof Promise) void size.then(schedule);
  else schedule();
}

function schedule(): void {
  if (isScheduled || waiting.length === 0) return;
  isScheduled = true;
  whenIdle(next);
}

/** Plans these when the page is idle, before others that wait. */
export function wantSizes(pairs: { preset: string; format: OutputFormat }[]): void {
  const fresh = pairs.filter(({ preset, format }) => {
    const now = known.peek();
    return !(now?.model === opened.peek()?.model && now?.sizes.has(keyOf(preset, format)));
  });
  waiting = [...fresh, ...waiting];
  schedule();
}

opened.subscribe(() => {
  waiting = [];
});
