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

/** Whether the sample, which was trained on the built-in texts' book, is open. */
export function isSample(): boolean {
  return opened.value?.isSample === true;
}

const builtIn = new Map<TextUse, Promise<string>>();

async function fetched(use: TextUse): Promise<string> {
  const response = await fetch(`./sample/${use}.txt`);
  if (!response.ok) throw new Error(`The server answered ${response.status} for sample/${use}.txt.`);
  return await response.text();
}

/** The text that was given for a use, or the built-in one: English prose. */
export async function textFor(use: TextUse): Promise<string> {
  const own = texts[use].value;
  if (own.trim() !== '') return own;
  const known = builtIn.get(use) ?? fetched(use);
  builtIn.set(use, known);
  known.catch(() => builtIn.delete(use));
  return await known;
}

/** Puts the built-in texts into the fields, to be read or changed. */
export async function showBuiltInTexts(): Promise<void> {
  for (const use of ['calibrate', 'measure'] as const) texts[use].value = await textFor(use);
}
