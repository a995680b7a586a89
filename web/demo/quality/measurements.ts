// Bits per byte of the model and of the outputs of runs, on one text.
import { signal } from '@preact/signals';
import type { Evaluation, Model } from 'wasmquant';
import { quantizer } from '../app/engine';
import { modelOf } from '../inspect/kept-model';
import type { FinishedRun } from '../run/runs';
import { runJob } from './job';
import { textFor, texts } from './texts';
import { tokensOf } from './tokenize';

export interface Measurement {
  model: Model;
  /** Number of the run, or null for the original model. */
  run: number | null;
  text: string;
  found: Evaluation;
}

export const measurements = signal<Measurement[]>([]);

/** The text that was measured on last: the field, or the built-in one. */
const used = signal('');

export function measured(model: Model, run: number | null): Evaluation | null {
  const text = texts.measure.value.trim() === '' ? used.value : texts.measure.value;
  return (
    measurements.value.find((known) => known.model === model && known.run === run && known.text === text)?.found ?? null
  );
}

/** Measures the model and the run, unless done before. */
export function measure(model: Model, run: FinishedRun | null): Promise<void> {
  return runJob('Measuring', async (signal, onProgress) => {
    const text = await textFor('measure');
    used.value = text;
    const tokens = await tokensOf(model, text, signal);
    const keep = async (number: number | null, subject: Model) => {
      if (measured(model, number)) return;
      // Bytes are counted with the original's tokenizer: not every output has one.
      const source = subject === model ? {} : { source: model };
      const found = await quantizer.value?.languageModel(subject, source).evaluate({ tokens, signal, onProgress });
      if (found) measurements.value = [...measurements.value, { model, run: number, text, found }];
    };
    await keep(null, model);
    if (run) await keep(run.number, await modelOf(run));
  });
}

/**
 * Mean difference of bits per byte between two evaluations of the same sequences, and its standard error: sequences are
 * compared pairwise, which cancels their difficulty.
 */
export function difference(before: Evaluation, after: Evaluation): { mean: number; error: number } | null {
  const count = before.sequenceLosses.length;
  if (count !== after.sequenceLosses.length || !before.bytes || count < 2) return null;
  const scale = count / (before.bytes * Math.LN2);
  const deltas = after.sequenceLosses.map((loss, i) => (loss - (before.sequenceLosses[i] ?? loss)) * scale);
  const mean = deltas.reduce((sum, delta) => sum + delta, 0) / count;
  const variance = deltas.reduce((sum, delta) => sum + (delta - mean) ** 2, 0) / (count - 1);
  return { mean, error: Math.sqrt(variance / count) };
}
