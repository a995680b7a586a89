// The tokenizer inside a GGUF file, as tokenizer.json: the ids of the tokenizer that it was made from, or of llama.cpp's rule.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { tokenizerFilesOf } from '../../../dist/model/gguf_tokenizer.js';
import { cli, cliJson } from '../cli/process.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const texts = [
  readFileSync(join(files, '../../README.md'), 'utf8'),
  "don't WE'LL  two   spaces\n\n\nthree 123456 7 grüße 你好 😀 <s>x</s>",
  '',
];

async function tokenizerOf(model) {
  const json = async (name) => JSON.parse(new TextDecoder().decode(await model.siblingFile(name)));
  return new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));
}

const split = (Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
const byteLevel = (use_regex) => ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex });
const sequence = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
const preTokenizers = {
  'gpt-2': byteLevel(true),
  smollm: sequence({ type: 'Digits', individual_digits: true }, byteLevel(true)),
  'llama-bpe': sequence(
    split(
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    ),
    byteLevel(false),
  ),
  qwen2: sequence(
    split(
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    ),
    byteLevel(false),
  ),
};

test('byte-level tokenizers are restored from the GGUF file that they were written to', async (t) => {
  const quantizer = await quantizerFor(t);
  const json = (name) => JSON.parse(readFileSync(join(tinyLlama, name), 'utf8'));
  for (const [name, pre_tokenizer] of Object.entries(preTokenizers)) {
    const folder = scratchFolder(t);
    cpSync(tinyLlama, folder, { recursive: true });
    const original = { ...json('tokenizer.json'), pre_tokenizer };
    // Joins that cross what the expressions cut: digits, spaces, letters.
    const merges = [
      't h',
      'th e',
      'Ġ t',
      'Ġt h',
      '1 2',
      '12 3',
      '4 5',
      'Ċ Ċ',
      'Ġ Ġ',
      'e r',
      'Ġ a',
      'l l',
      'o n',
      "' t",
    ];
    const made = merges.map((merge) => merge.replace(' ', ''));
    Object.assign(original.model.vocab, Object.fromEntries(made.map((token, i) => [token, 259 + i])));
    original.model.merges = merges;
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(original));
    const target = join(folder, 'model-q8.gguf');
    await quantizer.quantizeModel(await modelFor(t, quantizer, folder), 'q8_0', { target });
    const model = await modelFor(t, quantizer, target);
    assert.equal(model.metadata['tokenizer.ggml.pre'], name);
    const [own, from] = [await tokenizerOf(model), new Tokenizer(original, json('tokenizer_config.json'))];
    for (const text of texts) {
      assert.deepEqual(own.encode(text).ids, from.encode(text).ids, name);
      const { ids } = from.encode(text);
      assert.equal(own.decode(ids, { skip_special_tokens: true }), from.decode(ids, { skip_special_tokens: true }));
    }
  }
});

/** A file's metadata, without a file. */
function fileOf(metadata, arrays) {
  return { metadata, array: (key) => arrays[key] ?? [], pretokenizer: () => null };
}

/** As SentencePiece joins: again and again the pair that makes the piece of the best score, the leftmost first. */
function joinedPieces(text, scores) {
  const pieces = [...text];
  for (;;) {
    let best = -1;
    for (let i = 0; i + 1 < pieces.length; ++i) {
      const score = scores.get(pieces[i] + pieces[i + 1]);
      if (score !== undefined && (best < 0 || score > scores.get(pieces[best] + pieces[best + 1]))) best = i;
    }
    if (best < 0) return pieces;
    pieces.splice(best, 2, pieces[best] + pieces[best + 1]);
  }
}

test('SentencePiece vocabularies are joined by score, and unknown letters are bytes', () => {
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
  const letters = [...'▁abcdehlnorstw'];
  const words = [
    '▁t',
    'he',
    '▁the',
    'th',
    'er',
    '▁a',
    'll',
    'ello',
    'lo',
    '▁he',
    '▁hello',
    'or',
    'ld',
    '▁▁',
    'world',
    'wor',
  ];
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...words, ...letters];
  const scores = tokens.map((token) => (words.includes(token) ? -words.indexOf(token) : -1000));
  const token_type = tokens.map((_, i) => (i === 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1));
  const metadata = {
    'tokenizer.ggml.model': 'llama',
    'tokenizer.ggml.bos_token_id': '1',
    'tokenizer.ggml.eos_token_id': '2',
    'tokenizer.ggml.unknown_token_id': '0',
  };
  const arrays = Object.entries({ tokens, scores, token_type }).map(([key, list]) => [`tokenizer.ggml.${key}`, list]);
  const made = tokenizerFilesOf(fileOf(metadata, Object.fromEntries(arrays)));
  const [json, config] = Object.values(made).map((text) => JSON.parse(text));
  const tokenizer = new Tokenizer(json, config);
  const scoreOf = new Map(words.map((word, i) => [word, -i]));
  for (const text of ['the other hello world', 'a hello  there', 'tall hellos', 'the', 'hör']) {
    const pieces = joinedPieces(`▁${text.replaceAll(' ', '▁')}`, scoreOf);
    const expected = pieces.flatMap((piece) =>
      tokens.includes(piece)
        ? [tokens.indexOf(piece)]
        : [...new TextEncoder().encode(piece)].map((byte) => tokens.indexOf(bytes[byte])),
    );
    assert.deepEqual(tokenizer.encode(text).ids, [1, ...expected], text);
    assert.equal(tokenizer.decode(expected, { skip_special_tokens: true }), text);
  }
});

test('a file with an unknown tokenizer gives none', () => {
  assert.equal(tokenizerFilesOf(fileOf({}, {})), null);
  const tokens = { 'tokenizer.ggml.tokens': ['a', 'b'] };
  assert.equal(tokenizerFilesOf(fileOf({ 'tokenizer.ggml.model': 't5' }, tokens)), null);
  assert.equal(
    tokenizerFilesOf(fileOf({ 'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'unheard' }, tokens)),
    null,
  );
});

test('evaluate, generate and curve accept a GGUF file by itself', async (t) => {
  const folder = scratchFolder(t);
  const path = join(folder, 'alone.gguf');
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(source, 'q8_0', { target: path });
  const text = join(files, '../../SECURITY.md');
  const alone = await cliJson(['evaluate', path, '--text', text, '--sequences', '2']);
  assert.equal(alone.code, 0, alone.stderr);
  assert.ok(alone.document.bitsPerByte > 0);
  // "default" splits a text into words, but these are bytes one by one in any case.
  const withFolder = await cliJson(['evaluate', path, '--text', text, '--sequences', '2', '--source', tinyLlama]);
  assert.equal(alone.document.bitsPerByte, withFolder.document.bitsPerByte);
  const { code, stdout } = await cli(['generate', path, '--prompt', 'And the king said', '--count', '5']);
  assert.equal(code, 0);
  assert.match(stdout, /^And the king said[a-z ,]+\n/);
  const curve = await cliJson(['curve', path, '--schemes', 'q4_0,q2_k', '--text', text, '--windows', '1']);
  assert.equal(curve.document.metric.kind, 'bits-per-byte');
});
