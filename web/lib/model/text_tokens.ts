// Cuts concatenated tokens into windows that each begin with the tokenizer's prefix (such as `<s>`).

import { check, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { TextInput, TokenInput, Tokenizer } from '../api/types.js';

/** Default window; longer ones change little and take more memory. */
const usualLength = 256;

const invalid = (detail: string) => failure('argument-invalid', 'tokens', detail);

function idsOf(tokenizer: Tokenizer, text: string, withSpecial: boolean): number[] {
  const found = tokenizer.encode(text, { add_special_tokens: withSpecial });
  const ids = Array.isArray(found) ? found : found?.ids;
  if (Array.isArray(ids) && ids.every(Number.isInteger)) return ids;
  throw invalid('tokenizer.encode(text) gave neither token ids nor { ids }');
}

/** The tokens before `plain` in `whole`. */
function prefixOf(whole: readonly number[], plain: readonly number[]): number[] {
  for (let first = 0; first + plain.length <= whole.length; ++first) {
    if (plain.every((id, i) => whole[first + i] === id)) return whole.slice(0, first);
  }
  return [];
}

/** Each text with the tokenizer's prefix and suffix, cut in front of the suffix to at most `length` tokens. */
export function cutTexts(tokenizer: Tokenizer, texts: readonly string[], length: number): number[][] {
  return texts.map((text) => {
    const whole = idsOf(tokenizer, text, true);
    if (whole.length <= length) return whole;
    const plain = idsOf(tokenizer, text, false);
    const prefix = prefixOf(whole, plain);
    const suffix = whole.slice(prefix.length + plain.length);
    return [...prefix, ...plain.slice(0, Math.max(0, length - prefix.length - suffix.length)), ...suffix];
  });
}

/** One text with the tokenizer's prefix, with its suffix only if it is whole. */
export function promptOf(tokenizer: Tokenizer, text: string, isWhole = false): number[] {
  if (isWhole) return idsOf(tokenizer, text, true);
  const plain = idsOf(tokenizer, text, false);
  return [...prefixOf(idsOf(tokenizer, text, true), plain), ...plain];
}

/** Where windows begin. `adjoining`: each token of the text is in one. `overwritten`: as llama-perplexity cuts a text with its
 * prefix, every `length` tokens, and the prefix of a window stands in the place of as many tokens. The two are the same
 * without prefix. */
export type Windows = 'adjoining' | 'overwritten';

/** Windows of `length` tokens; an incomplete last one is dropped. A text shorter than a window is one sequence of its own
 * length. Errors: argument-invalid (fewer than 2 tokens...). */
export function tokensOfText(input: TextInput, maxPositions: number, windows: Windows = 'adjoining'): TokenInput {
  const { tokenizer, length = Math.min(usualLength, maxPositions), sequences = Number.POSITIVE_INFINITY } = input;
  const texts = typeof input.text === 'string' ? [input.text] : input.text;
  check(texts, 'strings', 'text');
  if (texts.some((text) => text.includes('\0')))
    throw invalid('the text holds U+0000, as files that are not text do: read them with readTextFile()');
  if (typeof tokenizer?.encode !== 'function')
    throw invalid(
      'text needs { tokenizer } with encode(text), such as the one of @huggingface/tokenizers or transformers.js',
    );
  if (!Number.isInteger(length) || length < 2) throw invalid(`length ${shown(length)} is not an integer of at least 2`);
  if (sequences !== Number.POSITIVE_INFINITY) check(sequences, 'count', 'sequences');
  const plain = texts.map((text) => idsOf(tokenizer, text, false));
  // An empty text, as WikiText's first is, tells no prefix.
  const telling = plain.findIndex(({ length }) => length > 0);
  const prefix = telling < 0 ? [] : prefixOf(idsOf(tokenizer, texts[telling] ?? '', true), plain[telling] ?? []);
  const step = length - prefix.length;
  if (step < 1)
    throw invalid(
      `the tokenizer puts ${prefix.length} tokens in front of a text; length ${length} leaves no room for the text`,
    );
  const stream = plain.flat();
  if (stream.length === 0 || prefix.length + stream.length < 2)
    throw invalid(`the text has ${stream.length} tokens, too few to predict one from another; give more text`);
  if (stream.length < step) {
    const data = Int32Array.from([...prefix, ...stream]);
    return { data, shape: [1, data.length] };
  }
  const distance = windows === 'adjoining' ? step : length;
  const count = Math.min(Math.floor((stream.length - step) / distance) + 1, sequences);
  const data = new Int32Array(count * length);
  for (let row = 0; row < count; ++row) {
    data.set(prefix, row * length);
    data.set(stream.slice(row * distance, row * distance + step), row * length + prefix.length);
  }
  return { data, shape: [count, length] };
}
