// Bytes of text per vocabulary token, from the model's tokenizer.json, for bits per byte.

import type { OpenedModel } from './model.js';

interface TokenizerJson {
  model?: { vocab?: Record<string, number> | [string, number][] };
  added_tokens?: { id: number; content: string; special?: boolean }[];
  pre_tokenizer?: unknown;
  decoder?: unknown;
}

const byteToken = /^<0x[0-9A-Fa-f]{2}>$/;

/** Bytes by token id. Byte-level vocabularies spell each byte as one character; others are UTF-8, with U+2581 for a
 * space and `<0x41>` for a single byte. Special tokens have no bytes. */
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

/** The same for a model's tokenizer.json; null if missing or not understood. */
export async function tokenBytesOf(model: OpenedModel): Promise<Map<number, number> | null> {
  try {
    const file = await model.siblingFile('tokenizer.json');
    const bytes = file && tokenBytes(JSON.parse(new TextDecoder().decode(file)) as TokenizerJson);
    return bytes && bytes.size > 0 ? bytes : null;
  } catch {
    return null; // unknown tokenizer: no bits per byte
  }
}
