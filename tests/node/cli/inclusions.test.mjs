// --include-towers, --include-experts and --exclude-experts on the command line, and the same options of the library.
import assert from 'node:assert/strict';
import test from 'node:test';
import { planOf } from '../../../dist/node.js';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { cli, cliJson, tinyLlama } from './process.mjs';

const flags = ['--include-towers', '--include-experts'];
const allFlags = [...flags, '--exclude-experts'];

test('plan, quantize and auto take both flags', async () => {
  for (const command of ['plan', 'quantize', 'auto']) {
    const { code, stdout } = await cli([command, command === 'quantize' ? '--help-all' : '--help']);
    assert.equal(code, 0);
    for (const flag of allFlags) assert.ok(stdout.includes(`  ${flag} `), `${command} ${flag}`);
  }
});

test('a model without towers and experts gets the same plan with and without the flags', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const plan = await quantizer.plan(model, 'int8');
  assert.deepEqual(await quantizer.plan(model, 'int8', { includeTowers: true, experts: 'include' }), plan);
  const { document, stderr } = await cliJson(['plan', tinyLlama, '--preset', 'int8', ...flags]);
  assert.equal(stderr, '');
  assert.deepEqual(planOf(document), plan);
});

test('experts are included or excluded, not both', async (t) => {
  const { code, stderr } = await cli(['plan', tinyLlama, '--preset', 'int8', '--include-experts', '--exclude-experts']);
  assert.equal(code, 2);
  assert.match(stderr, /--include-experts/);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  await assert.rejects(() => quantizer.plan(model, 'int8', { experts: 'both' }), {
    code: 'argument-invalid',
    where: 'experts',
  });
  await assert.rejects(() => quantizer.plan(model, 'q4_k_m', { format: 'gguf', experts: 'exclude' }), {
    code: 'format-unsupported',
  });
});

test('shares of parameters and bytes follow the totals', async () => {
  const { stdout } = await cli(['plan', tinyLlama, '--preset', 'int8']);
  assert.match(
    stdout,
    /^quantized: \d\d\.\d % of parameters, \d\d\.\d % of bytes\n +left +why\n( +\S+ kB .* tensors? +.*\n)+/m,
  );
});
