// Text to token ids and back, off the main thread: loading a vocabulary and tokenizing a long text take a while.
import { Tokenizer } from '@huggingface/tokenizers';
import type { TokenizerFiles } from '../../present/tokenizer_files';

/** The model's tokenizer, and a text, or several lists of ids. */
export interface TokenizeRequest extends TokenizerFiles {
  work: { text: string } | { ids: number[][] };
}

export interface Encoded {
  plain: number[];
  /** The same with the tokenizer's special tokens. */
  special: number[];
}
export type TokenizeReply = Encoded | { texts: string[] } | { problem: string };

function answer({ tokenizer, config, work }: TokenizeRequest): TokenizeReply {
  try {
    const made = new Tokenizer(JSON.parse(tokenizer) as object, JSON.parse(config) as object);
    if ('ids' in work) return { texts: work.ids.map((ids) => made.decode(ids, { skip_special_tokens: true })) };
    const ids = (withSpecial: boolean) => made.encode(work.text, { add_special_tokens: withSpecial }).ids;
    return { plain: ids(false), special: ids(true) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

self.onmessage = ({ data }: MessageEvent<TokenizeRequest>) => self.postMessage(answer(data));
