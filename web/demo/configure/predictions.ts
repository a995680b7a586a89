// The size and bits per weight that every preset gives for the open model, planned one after another while the page is
// idle: a plan of a large model takes a few milliseconds, and there are many presets.
import { effect, signal } from '@preact/signals';
import type { Model, OutputFormat, Totals } from 'wasmquant';
import { bytesText } from '../../present/units';
import { quantizer } from '../app/engine';
import { opened } from '../open/opened';
import { choice, presets } from './choice';
import { formatFor } from './formats';

interface Predictions {
  model: Model;
  format: OutputFormat;
  /** By preset name; null if it does not fit the model. */
  totals: Map<string, Totals | null>;
}

const predictions = signal<Predictions | null>(null);

function predict(model: Model, name: string, format: OutputFormat): Totals | null {
  const preset = presets.value.find((candidate) => candidate.name === name);
  if (!quantizer.value || !preset) return null;
  try {
    const own = formatFor(preset, format, model);
    return quantizer.value.plan(model, name, { format: own }).totals;
  } catch {
    return null; // choosing the preset shows the reason
  }
}

/** Safari has no idle callbacks. */
function whenIdle(use: () => void): void {
  if ('requestIdleCallback' in window) window.requestIdleCallback(use, { timeout: 500 });
  else setTimeout(use, 20);
}

effect(() => {
  const model = opened.value?.model;
  const { format } = choice.value;
  if (!model || !quantizer.value) return;
  const known = predictions.peek();
  if (known?.model === model && known.format === format) return;
  predictions.value = { model, format, totals: new Map() };
  const names = presets.peek().map(({ name }) => name);
  const next = () => {
    const now = predictions.peek();
    const name = names.shift();
    if (name === undefined || now?.model !== model || now.format !== format || opened.peek()?.model !== model) return;
    predictions.value = { ...now, totals: new Map(now.totals).set(name, predict(model, name, format)) };
    whenIdle(next);
  };
  whenIdle(next);
});

/** ` · 1.91 MB, 4.31 bits`, or '' while unknown. */
export function predictionText(preset: string): string {
  const totals = predictions.value?.totals.get(preset);
  if (!totals) return '';
  const bits = totals.quantized > 0 ? `, ${totals.bitsPerWeight.toFixed(2)} bits` : '';
  return ` · ${bytesText(totals.bytesAfter)}${bits}`;
}
