/** `--tokens FILE` or `--text FILE`: the input of a model. Text is tokenized with the model's tokenizer.json. */
import { readFile, stat } from 'node:fs/promises';
import type { Tokenizer } from '@huggingface/tokenizers';
import { weightFilePattern } from '../lib/internal.js';
import { type Model, type Quantizer, readTextFile, type TextInput } from '../lib/node.js';
import { tokenizerFiles } from '../present/tokenizer_files.js';
import { CommandError, usageError } from './failure.js';
import { openModel } from './model_source.js';
import { printable } from './terminal.js';

export interface TokenOptions {
  tokens?: string;
  tensor?: string;
  text?: string;
  length?: number;
  sequences?: number;
}

/** Whether a path is that of a text rather than of a model or of arrays, by its name. */
export async function isTextFile(path: string): Promise<boolean> {
  const isOther = weightFilePattern.test(path) || /^(https?|hf):|\.(index\.json|bin|pt|pth|pkl|h5|dat)$/i.test(path);
  return !isOther && (await stat(path).catch(() => null))?.isFile() === true;
}

/** Text and the tokenizer of the first model that has one. Errors: source-invalid, file-invalid. */
export async function openText(models: readonly Model[], path: string): Promise<Pick<TextInput, 'text' | 'tokenizer'>> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new CommandError(
      'source-invalid',
      `cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        where: path,
      },
    );
  });
  const { text, remark } = await readTextFile(new Uint8Array(bytes), path);
  if (remark) process.stderr.write(`note: ${printable(remark)}\n`);
  return { text, tokenizer: await openTokenizer(models, 'put it there, or give --tokens') };
}

/** The tokenizer of the first model that has one. Errors: source-invalid with `hint`, file-invalid. */
export async function openTokenizer(models: readonly Model[], hint: string): Promise<Tokenizer> {
  const all = await Promise.all(models.map(tokenizerFiles));
  const files = all.find((found) => found !== null);
  if (!files)
    throw new CommandError('source-invalid', 'is not in the folder of the model; text input needs its tokenizer', {
      where: 'tokenizer.json',
      hint,
    });
  const { Tokenizer: Loaded } = await import('@huggingface/tokenizers'); // large, and most runs read no text
  try {
    return new Loaded(JSON.parse(files.tokenizer) as object, JSON.parse(files.config) as object);
  } catch (error) {
    throw new CommandError(
      'file-invalid',
      `cannot be used as a tokenizer: ${error instanceof Error ? error.message : String(error)}`,
      {
        where: 'tokenizer.json',
      },
    );
  }
}

/** The input that the options name, by the tokenizer of the first model that has one; the opened token file, to be closed, or null. */
export async function openTokens(
  quantizer: Quantizer,
  models: readonly Model[],
  options: TokenOptions,
  signal: AbortSignal,
): Promise<{ tokens: Model | TextInput; file: Model | null }> {
  const { tokens, text, length, sequences } = options;
  if (tokens !== undefined) {
    const file = await openModel(quantizer, tokens, signal);
    return { tokens: file, file };
  }
  if (text === undefined)
    throw usageError('neither --tokens nor --text is given', 'give a file of token ids or of text');
  const given = { ...(length !== undefined && { length }), ...(sequences !== undefined && { sequences }) };
  return { tokens: { ...(await openText(models, text)), ...given }, file: null };
}
