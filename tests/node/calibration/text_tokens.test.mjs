// Text instead of token ids: windows, tokenizers of both kinds, and the command line with the model's own.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { tokensOfText } from '../../../dist/model/text_tokens.js';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { cli, cliJson } from '../cli/process.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const tokenFile = join(files, 'tiny-llama-reference/eval_tokens.safetensors');
const { data: ids } = readTensors(tokenFile).get('input_ids');
/** Held-out text: rows are `<s>` (256) and 255 bytes. */
const text = String.fromCharCode(...ids.filter((id) => id !== 256));

/** Letters are their own tokens; 7 in front and 9 behind. */
const letters = {
  encode: (words, { add_special_tokens: special = true } = {}) => {
    const plain = [...words].map((letter) => letter.charCodeAt(0));
    return special ? [7, ...plain, 9] : plain;
  },
};

test("every window begins with the tokenizer's prefix", () => {
  const { data, shape } = tokensOfText({ text: 'abcdefg', tokenizer: letters, length: 3 }, 100);
  assert.deepEqual(shape, [3, 3]);
  assert.deepEqual([...data], [7, 97, 98, 7, 99, 100, 7, 101, 102]);
  const ids = { encode: (words, options) => ({ ids: letters.encode(words, options) }) };
  assert.deepEqual(tokensOfText({ text: 'abcdefg', tokenizer: ids, length: 3 }, 100).data, data);
  const two = tokensOfText({ text: ['ab', 'cd'], tokenizer: letters, length: 4, sequences: 1 }, 100);
  assert.deepEqual([...two.data], [7, 97, 98, 99]);
  const bare = { encode: (words) => letters.encode(words, { add_special_tokens: false }) };
  assert.deepEqual([...tokensOfText({ text: 'abcd', tokenizer: bare, length: 2 }, 100).data], [97, 98, 99, 100]);
  assert.deepEqual(tokensOfText({ text: 'x'.repeat(2000), tokenizer: letters }, 50).shape, [40, 50]);
});

test('texts without tokens change nothing, wherever they stand', () => {
  const texts = ['abcdefg', 'hijk'];
  const options = { tokenizer: letters, length: 4 };
  const right = tokensOfText({ text: texts, ...options }, 100);
  assert.equal(right.data[0], 7);
  for (const text of [
    ['', ...texts],
    ['', '', ...texts, ''],
    [texts[0], '', texts[1]],
  ])
    assert.deepEqual(tokensOfText({ text, ...options }, 100), right, JSON.stringify(text));
  assert.throws(() => tokensOfText({ text: ['', ''], ...options }, 100), { code: 'argument-invalid' });
});

test('a text shorter than a window is one sequence of its own length', () => {
  const { data, shape } = tokensOfText({ text: 'abc', tokenizer: letters }, 100);
  assert.deepEqual(shape, [1, 4]);
  assert.deepEqual([...data], [7, 97, 98, 99]);
});

test('texts that cannot be split are refused', () => {
  const refused = (input, pattern) =>
    assert.throws(
      () => tokensOfText({ text: 'abc', tokenizer: letters, ...input }, 100),
      (error) => {
        assert.equal(error.code, 'argument-invalid');
        assert.match(error.message, pattern);
        return true;
      },
    );
  refused({ text: 'a', tokenizer: { encode: () => [5] } }, /the text has 1 tokens/);
  refused({ text: '' }, /the text has 0 tokens/);
  refused({ tokenizer: undefined }, /needs \{ tokenizer \}/);
  refused({ tokenizer: { encode: () => 'abc' } }, /neither token ids nor/);
  refused({ length: 1 }, /length 1/);
  refused({ length: 2.5 }, /length 2.5/);
  refused({ sequences: 0 }, /sequences: is 0/);
  refused(
    { tokenizer: { encode: (_, { add_special_tokens }) => (add_special_tokens ? [1, 2, 5] : [5]) }, length: 2 },
    /2 tokens in front/,
  );
  refused({ text: [] }, /0 tokens/);
});

test('text gives the same result as its token file', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const json = async (name) => JSON.parse(new TextDecoder().decode(await model.siblingFile(name)));
  assert.equal(await model.siblingFile('nothing.json'), null);
  const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));
  const { data, shape } = tokensOfText({ text, tokenizer, length: 256 }, 256);
  assert.deepEqual(shape, [16, 256]);
  assert.deepEqual(data, Int32Array.from(ids));
  const found = await quantizer.languageModel(model).evaluate({ tokens: { text, tokenizer, sequences: 2 } });
  assert.equal(found.sequences, 2);
});

test('the command line accepts text', async (t) => {
  const folder = scratchFolder(t);
  const path = join(folder, 'text.txt');
  writeFileSync(path, text);
  const byText = await cliJson(['evaluate', tinyLlama, '--text', path]);
  const byIds = await cliJson(['evaluate', tinyLlama, '--tokens', tokenFile]);
  assert.equal(byText.code, 0);
  assert.equal(byText.document.bitsPerByte, byIds.document.bitsPerByte);
  const config = join(folder, 'awq.json');
  const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
  writeFileSync(
    config,
    JSON.stringify({ global_quant_config: { weight }, exclude: ['lm_head'], algo_config: [{ name: 'awq' }] }),
  );
  const out = join(folder, 'out');
  const done = await cli(['quantize', tinyLlama, '-o', out, '--config', config, '--calibration-text', path]);
  assert.equal(done.code, 0, done.stderr);

  const neither = await cliJson(['evaluate', tinyLlama]);
  assert.equal(neither.code, 2);
  assert.match(neither.document.error.message, /neither --tokens nor --text/);
  assert.equal((await cli(['evaluate', tinyLlama, '--text', path, '--tokens', tokenFile])).code, 2);
  const missing = await cliJson(['evaluate', tinyLlama, '--text', join(folder, 'nothing.txt')]);
  assert.equal(missing.document.error.code, 'source-invalid');
  const bare = await cliJson(['evaluate', join(files, 'forward/llama'), '--text', path]);
  assert.match(bare.document.error.message, /not in the folder of the model/);
});
