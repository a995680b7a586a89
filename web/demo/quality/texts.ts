// Texts that the model is run on: one to calibrate with, another one to measure on, or the result would flatter itself.
import { signal } from '@preact/signals';
import { opened } from '../open/opened';

export type TextUse = 'calibrate' | 'measure';

export const texts = { calibrate: signal(''), measure: signal('') };

/** Sequences of 256 tokens that are taken from a text; what follows is not used. */
export const sequences = 32;

/** Longer texts are cut: this is far more than all sequences need. */
export const mostCharacters = 2_000_000;

/** What the sample knows to go on with: it has read one book. */
export const samplePrompt = 'And the king said unto ';

/** The sample comes with texts of its own. */
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
