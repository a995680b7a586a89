// The tokenizer files of a model, as text for the caller's tokenizer library.
import type { Model } from 'wasmquant';

/** JSON texts of the files of a tokenizer. */
export interface TokenizerFiles {
  /** tokenizer.json. */
  tokenizer: string;
  /** tokenizer_config.json; `{}` when there is none. */
  config: string;
}

/** Sibling files of the model's weights; null without tokenizer.json. */
export async function tokenizerFiles(model: Pick<Model, 'siblingFile'>): Promise<TokenizerFiles | null> {
  const names = ['tokenizer.json', 'tokenizer_config.json'];
  const files = await Promise.all(names.map((name) => model.siblingFile(name)));
  const [tokenizer, config] = files.map((file) => file && new TextDecoder().decode(file));
  return tokenizer ? { tokenizer, config: config ?? '{}' } : null;
}
