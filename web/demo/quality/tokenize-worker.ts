// Text to token ids and back, off the main thread: a vocabulary takes a while to load and a long text to cut.
import { Tokenizer } from '@huggingface/tokenizers';
import type { TokenizerFiles } from '../../present/tokenizer_files';

/** The model's tokenizer, and a text, or ids of several. */
export interface TokenizeRequest extends TokenizerFiles {
  work: { text: string } | { ids: number[][] };
}

export interface Encoded {
  plain: number[];
  /** The same with what the tokenizer puts around it. */
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
