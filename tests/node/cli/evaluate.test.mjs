// `wasmquant evaluate`: the table, the JSON document, wrong usage.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeFloats } from '../../interop/safetensors_file.mjs';
import { files, tinyLlama } from '../scratch.mjs';
import { cli, cliJson, scratch } from './process.mjs';

const tokens = join(files, 'tiny-llama-reference/eval_tokens.safetensors');

test('evaluate prints bits per byte and perplexity', async () => {
  const { code, stdout, stderr } = await cli(['evaluate', tinyLlama, '--tokens', tokens]);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  assert.match(stdout, /bits per byte {3}1\.5097 ± 0\.0\d+/);
  assert.match(stdout, /perplexity {6}2\.84/);
  assert.match(stdout, /4080 predictions in 16 sequences of 256 tokens/);
});

test("evaluate --json prints the library's document, and --report writes it", async (t) => {
  const report = join(scratch(t), 'report.json');
  const family = join(files, 'forward/gemma2');
  const ids = join(family, 'expected.safetensors');
  const { code, document } = await cliJson(['evaluate', family, '--tokens', ids, '--report', report, '--threads', '0']);
  assert.equal(code, 0);
  assert.equal(document.bitsPerByte, null);
  assert.equal(document.tokens, 46);
  assert.deepEqual(JSON.parse(readFileSync(report, 'utf8')), document);
  const told = await cliJson(['evaluate', family, '--tokens', ids, '--bytes-per-token', '4', '--threads', '0']);
  assert.ok(Math.abs(told.document.bitsPerByte - document.bitsPerToken / 4) < 1e-12);
  const int8 = await cliJson(['evaluate', family, '--tokens', ids, '--activations', 'int8', '--threads', '0']);
  assert.notEqual(int8.document.bitsPerToken, document.bitsPerToken);
});

test('evaluate refuses what it cannot do', async (t) => {
  const folder = scratch(t);
  const path = join(folder, 'model.safetensors');
  writeFloats(path, new Map([['weight', { shape: [1], data: new Float32Array(1) }]]));
  const bare = await cliJson(['evaluate', path, '--tokens', tokens]);
  assert.equal(bare.code, 1);
  assert.equal(bare.document.error.code, 'config-invalid');
  const wrong = await cliJson(['evaluate', tinyLlama, '--tokens', path]);
  assert.equal(wrong.document.error.code, 'dtype-unsupported');
  const missing = await cliJson(['evaluate', tinyLlama, '--tokens', tokens, '--tensor', 'ids']);
  assert.equal(missing.document.error.code, 'tensor-missing');
  assert.equal((await cli(['evaluate', tinyLlama])).code, 2);
  assert.equal((await cli(['evaluate', tinyLlama, '--tokens', tokens, '--bytes-per-token', '0'])).code, 2);
  assert.equal((await cli(['evaluate', tinyLlama, '--tokens', tokens, '--activations', 'fp8'])).code, 2);
});

test('a family that cannot be run is named, with what can be done with it', async (t) => {
  const folder = scratch(t);
  cpSync(tinyLlama, folder, { recursive: true });
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), model_type: 'qwen3_odd' }));
  for (const command of ['evaluate', 'imatrix']) {
    const more = command === 'imatrix' ? ['-o', join(folder, 'matrix.gguf')] : [];
    const { code, stderr } = await cli([command, folder, '--tokens', tokens, ...more]);
    assert.equal(code, 1);
    assert.match(stderr, /models of type "qwen3_odd" cannot be/);
    assert.match(stderr, /such as qwen3/);
    assert.match(stderr, /Every checkpoint format takes them/);
  }
  const out = join(folder, 'out');
  const { code, stderr } = await cli([
    'quantize',
    folder,
    '-o',
    out,
    '--preset',
    'int8',
    '--format',
    'compressed-tensors',
  ]);
  assert.equal(code, 0, stderr);
});
