// Continuations of a prompt by the model and by the outputs of runs.
import { signal } from '@preact/signals';
import type { Generation, Model } from 'wasmquant';
import { quantizer } from '../app/engine';
import { modelOf } from '../inspect/kept-model';
import type { FinishedRun } from '../run/runs';
import { runJob } from './job';
import { isSample, samplePrompt } from './texts';
import { decoded, encoded, tokenizerOf } from './tokenize';

/** Maximum number of generated tokens. */
export const mostTokens = 64;

export interface Continuation {
  model: Model;
  /** Number of the run, or null for the original model. */
  run: number | null;
  prompt: string;
  tokens: number[];
  text: string;
  stopped: Generation['stopped'];
}

export const prompt = signal('');
export const continuations = signal<Continuation[]>([]);

/** For an empty field. */
export const usualPrompt = () => (isSample() ? samplePrompt : 'Once upon a time');
const promptText = () => (prompt.value.trim() === '' ? usualPrompt() : prompt.value);

export function continued(model: Model, run: number | null): Continuation | null {
  const text = promptText();
  return (
    continuations.value.find((known) => known.model === model && known.run === run && known.prompt === text) ?? null
  );
}

/** Lets the model and the run continue the prompt, unless done before. */
export function goOn(model: Model, run: FinishedRun | null): Promise<void> {
  const text = promptText();
  return runJob('Writing', async (signal, onProgress) => {
    const ids = await encoded(model, text, signal);
    const tokenizer = tokenizerOf(ids);
    const options = { text, tokenizer, count: mostTokens, signal, onProgress };
    const keep = async (number: number | null, subject: Model) => {
      if (continued(model, number)) return;
      const source = subject === model ? {} : { source: model };
      const found = await quantizer.value?.languageModel(subject, source).generate(options);
      if (!found) return;
      const { tokens, stopped } = found;
      // A decoder may treat the start of a text specially: the prompt is decoded with it, then removed.
      const [before = '', whole = ''] = await decoded(model, [ids.plain, [...ids.plain, ...tokens]], signal);
      const added = whole.slice(whole.startsWith(before) ? before.length : 0);
      continuations.value = [
        ...continuations.value,
        { model, run: number, prompt: text, tokens, text: added, stopped },
      ];
    };
    await keep(null, model);
    if (run) await keep(run.number, await modelOf(run));
  });
}
