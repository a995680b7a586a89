// Small encoders with their expected embeddings, their tokenizer, and the files that sentence-transformers adds to the folder.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { files, scratchFolder } from '../scratch.mjs';

export const folderOf = (family) => join(files, 'forward', family);
export const words = Array.from({ length: 40 }, (_, i) => `w${i}`);
/** A word is a token; nothing is put around a text. */
export const tokenizer = { encode: (text) => text.split(' ').map((word) => words.indexOf(word)) };
export const sentences = ['w3 w4 w5', 'w6 w7', 'w8 w9 w10 w11 w12', 'w13 w3 w20 w21', 'w30 w31 w32'];

export function expectedOf(family, pooling) {
  const tensors = readTensors(join(folderOf(family), 'expected.safetensors'));
  const { data, shape } = tensors.get(pooling);
  const rows = Array.from({ length: shape[0] }, (_, row) => data.slice(row * shape[1], (row + 1) * shape[1]));
  const ids = [...tensors.get('input_ids').data].map(Number);
  return { rows, texts: [ids.slice(0, 24), ids.slice(24)].map((row) => row.map((id) => `w${id}`).join(' ')) };
}

/** As sentence-transformers describes it; `original` is no module. */
export function withFirstToken(folder) {
  const config = JSON.stringify({ pooling_mode_cls_token: true });
  for (const name of ['1_Pooling', 'original']) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'config.json'), config);
  }
  const rows = [
    ['', 'Transformer'],
    ['1_Pooling', 'Pooling'],
    ['../x', 'Dropout'],
  ];
  const modules = rows.map(([path, type], idx) => ({ idx, path, type: `sentence_transformers.models.${type}` }));
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(modules));
}

/** A folder of the encoder with a tokenizer for its words, and a file of sentences. */
export function withTokenizer(t) {
  const folder = join(scratchFolder(t), 'model');
  cpSync(folderOf('bert'), folder, { recursive: true });
  const vocab = Object.fromEntries(words.map((word, i) => [word, i]));
  const model = { type: 'WordLevel', vocab, unk_token: 'w0' };
  const parts = { normalizer: null, pre_tokenizer: { type: 'Whitespace' }, post_processor: null, decoder: null };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ version: '1.0', added_tokens: [], ...parts, model }));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }));
  writeFileSync(join(folder, '../texts.txt'), [...sentences, '', sentences[0]].join('\n'));
  return { folder, text: join(folder, '../texts.txt') };
}

/** The encoder with WordPiece, as conversion to GGUF reads it. */
export function bertWithVocabulary(t) {
  const { folder } = withTokenizer(t);
  const vocab = Object.fromEntries(words.map((word, i) => [word, i]));
  for (const [i, word] of ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].entries()) {
    delete vocab[`w${i + 35}`];
    vocab[word] = i + 35;
  }
  const model = { type: 'WordPiece', vocab, unk_token: '[UNK]', continuing_subword_prefix: '##' };
  const pre = { normalizer: { type: 'BertNormalizer', lowercase: true }, pre_tokenizer: { type: 'BertPreTokenizer' } };
  const added = Object.entries(vocab).filter(([word]) => word.startsWith('['));
  const added_tokens = added.map(([content, id]) => ({ id, content, special: true }));
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ version: '1.0', added_tokens, ...pre, model }));
  const special = {
    cls_token: '[CLS]',
    sep_token: '[SEP]',
    unk_token: '[UNK]',
    pad_token: '[PAD]',
    mask_token: '[MASK]',
  };
  writeFileSync(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ tokenizer_class: 'BertTokenizer', ...special }),
  );
  withFirstToken(folder);
  return folder;
}
