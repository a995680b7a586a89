// What presets make of the open model, planned one after another while the page is idle: a plan of a large model takes
// a while, and there are many presets.
import { signal } from '@preact/signals';
import { type Model, type OutputFormat, type Plan, QuantizationError, type Totals } from 'wasmquant';
import { quantizer } from '../app/engine';
import { opened } from '../open/opened';

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

/** The last plan: what is chosen was often planned for its size just before. */
let last: { model: Model; key: string; plan: Plan } | null = null;

/** Errors: those of the library's. */
export function planOf(model: Model, preset: string, format: OutputFormat): Plan {
  const key = keyOf(preset, format);
  if (last?.model !== model || last.key !== key)
    last = { model, key, plan: quantizer.value!.plan(model, preset, { format }) };
  return last.plan;
}

function planned(model: Model, preset: string, format: OutputFormat): Size {
  try {
    const { totals, diagnostics } = planOf(model, preset, format);
    const wrong = diagnostics.find(({ severity }) => severity === 'error');
    return wrong ? { totals: null, reason: wrong.message } : { totals, reason: '' };
  } catch (error) {
    const reason = error instanceof QuantizationError ? error.detail : String(error);
    return { totals: null, reason };
  }
}

function keep(model: Model, preset: string, format: OutputFormat): Size {
  const size = planned(model, preset, format);
  const sizes = known.peek()?.model === model ? known.peek()?.sizes : undefined;
  known.value = { model, sizes: new Map(sizes).set(keyOf(preset, format), size) };
  return size;
}

/** Null while it is not known. */
export function sizeOf(preset: string, format: OutputFormat): Size | null {
  const now = known.value;
  return now && now.model === opened.value?.model ? (now.sizes.get(keyOf(preset, format)) ?? null) : null;
}

/** Plans now, unless it is known. */
export function sizeNow(model: Model, preset: string, format: OutputFormat): Size {
  const now = known.peek();
  return (now?.model === model ? now.sizes.get(keyOf(preset, format)) : undefined) ?? keep(model, preset, format);
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
  sizeNow(model, job.preset, job.format);
  schedule();
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
  last = null;
});
