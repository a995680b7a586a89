// How many bytes of text each token of a vocabulary stands for, from the model's tokenizer.json; bits per byte need it.

import type { OpenedModel } from './model.js';

interface TokenizerJson {
  model?: { vocab?: Record<string, number> | [string, number][] };
  added_tokens?: { id: number; content: string; special?: boolean }[];
  pre_tokenizer?: unknown;
  decoder?: unknown;
}

const byteToken = /^<0x[0-9A-Fa-f]{2}>$/;

/**
 * Bytes by token id. Byte-level vocabularies spell each byte as one character; others are UTF-8, with U+2581 for a space
 * and `<0x41>` for a single byte. Special tokens stand for nothing.
 */
export function tokenBytes(tokenizer: TokenizerJson): Map<number, number> {
  const isByteLevel = JSON.stringify([tokenizer.pre_tokenizer, tokenizer.decoder]).includes('"ByteLevel"');
  const encoder = new TextEncoder();
  const utf8 = (text: string) => encoder.encode(text.replaceAll('\u2581', ' ')).byteLength;
  const bytesOf = (text: string) => {
    if (isByteLevel) return [...text].length;
    return byteToken.test(text) ? 1 : utf8(text);
  };
  const vocabulary = tokenizer.model?.vocab ?? {};
  const entries: [string, number][] = Array.isArray(vocabulary)
    ? vocabulary.map(([text], id) => [text, id])
    : Object.entries(vocabulary);
  const bytes = new Map(entries.map(([text, id]) => [id, bytesOf(text)]));
  for (const { id, content, special } of tokenizer.added_tokens ?? []) bytes.set(id, special ? 0 : utf8(content));
  return bytes;
}

/** The same of a model's tokenizer.json; null when there is none that can be understood. */
export async function tokenBytesOf(model: OpenedModel): Promise<Map<number, number> | null> {
  try {
    const file = await model.siblingFile('tokenizer.json');
    const bytes = file && tokenBytes(JSON.parse(new TextDecoder().decode(file)) as TokenizerJson);
    return bytes && bytes.size > 0 ? bytes : null;
  } catch {
    return null; // another tokenizer's file: bits per byte are then not told
  }
}
