// A text for the library, tokenized in a worker with the model's tokenizer.
import type { Model, TextInput, Tokenizer } from 'wasmquant';
import { tokenizerFiles } from '../../present/tokenizer_files';
import { mostCharacters, sequences } from './texts';
import type { Encoded, TokenizeReply, TokenizeRequest } from './tokenize-worker';

function inWorker(request: TokenizeRequest, signal: AbortSignal): Promise<TokenizeReply> {
  const worker = new Worker(new URL('./tokenize-worker.ts', import.meta.url), { type: 'module' });
  return new Promise<TokenizeReply>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    worker.onmessage = ({ data }: MessageEvent<TokenizeReply>) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message || 'The tokenizer could not be loaded.'));
    worker.postMessage(request);
  }).finally(() => worker.terminate());
}

/** Errors: what is missing or wrong, in a sentence. */
async function ask(model: Model, work: TokenizeRequest['work'], signal: AbortSignal) {
  signal.throwIfAborted();
  const files = await tokenizerFiles(model);
  if (files === null) {
    throw new Error('The model has no tokenizer.json. Open its folder, or choose that file together with the weights.');
  }
  const reply = await inWorker({ ...files, work }, signal);
  if ('problem' in reply) throw new Error(`tokenizer.json cannot be used here: ${reply.problem}`);
  return reply;
}

export async function encoded(model: Model, text: string, signal: AbortSignal): Promise<Encoded> {
  return (await ask(model, { text }, signal)) as Encoded;
}

export async function decoded(model: Model, ids: number[][], signal: AbortSignal): Promise<string[]> {
  return ((await ask(model, { ids }, signal)) as { texts: string[] }).texts;
}

/** A tokenizer for the single text that `encoded` belongs to. */
export function tokenizerOf({ plain, special }: Encoded): Tokenizer {
  return { encode: (_, options) => (options?.add_special_tokens === false ? plain : special) };
}

/** For a worker, which makes the tokenizer itself. */
export async function plainTokensOf(model: Model, text: string, signal: AbortSignal) {
  const cut = text.slice(0, mostCharacters);
  return { text: cut, sequences, ...(await encoded(model, cut, signal)) };
}

export async function tokensOf(model: Model, text: string, signal: AbortSignal): Promise<TextInput> {
  const { plain, special, ...input } = await plainTokensOf(model, text, signal);
  return { ...input, tokenizer: tokenizerOf({ plain, special }) };
}
