// Texts for the model: one to calibrate with, and a different one to measure on, which avoids flattering results.
import { signal } from '@preact/signals';
import { opened } from '../open/opened';

export type TextUse = 'calibrate' | 'measure';

export const texts = { calibrate: signal(''), measure: signal('') };

/** Sequences of 256 tokens taken from a text; the rest is not used. */
export const sequences = 32;

/** Longer texts are cut: far more than all sequences need. */
export const mostCharacters = 2_000_000;

/** A prompt for the sample model, which was trained on one book. */
export const samplePrompt = 'And the king said unto ';

/** Whether the sample, which has its own texts, is open. */
export function hasSampleTexts(): boolean {
  return opened.value?.isSample === true;
}

export async function useSampleTexts(): Promise<void> {
  for (const use of ['calibrate', 'measure'] as const) {
    const response = await fetch(`./sample/${use}.txt`);
    if (!response.ok) throw new Error(`The server answered ${response.status} for sample/${use}.txt.`);
    texts[use].value = await response.text();
  }
}
