// Text to token ids, off the main thread: a vocabulary takes a while to load and a long text to cut.
import { Tokenizer } from '@huggingface/tokenizers';

/** JSON texts of the model's files, and the text. */
export interface TokenizeRequest {
  tokenizer: string;
  config: string;
  text: string;
}

/** Ids of the text, and the same with what the tokenizer puts around it. */
export type TokenizeReply = { plain: number[]; special: number[] } | { problem: string };

function tokenized({ tokenizer, config, text }: TokenizeRequest): TokenizeReply {
  try {
    const made = new Tokenizer(JSON.parse(tokenizer) as object, JSON.parse(config) as object);
    const ids = (withSpecial: boolean) => made.encode(text, { add_special_tokens: withSpecial }).ids;
    return { plain: ids(false), special: ids(true) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

self.onmessage = ({ data }: MessageEvent<TokenizeRequest>) => self.postMessage(tokenized(data));
