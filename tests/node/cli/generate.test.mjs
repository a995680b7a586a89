// `wasmquant generate`: the text, the JSON document, wrong usage.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { files, tinyLlama } from '../scratch.mjs';
import { cli, cliJson } from './process.mjs';

test('generate prints prompt and continuation', async () => {
  const prompt = 'And the king said unto ';
  const { code, stdout, stderr } = await cli(['generate', tinyLlama, '--prompt', prompt, '--count', '8']);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  const { document } = await cliJson(['generate', tinyLlama, '--prompt', prompt, '--count', '8', '--threads', '0']);
  assert.equal(document.tokens.length, 8);
  assert.ok(stdout.startsWith(`${prompt}${document.text}\n\n8 tokens, `), stdout);
});

test('generate refuses what it cannot do', async () => {
  const bare = await cliJson(['generate', join(files, 'forward/qwen2'), '--prompt', 'a']);
  assert.equal(bare.code, 1);
  assert.equal(bare.document.error.code, 'source-invalid');
  assert.equal(bare.document.error.where, 'tokenizer.json');
  assert.equal((await cli(['generate', tinyLlama])).code, 2);
  assert.equal((await cli(['generate', tinyLlama, '--prompt', 'a', '--count', '0'])).code, 2);
});
