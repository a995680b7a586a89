// --include-towers and --include-experts on the command line, and the same options of the library.
import assert from 'node:assert/strict';
import test from 'node:test';
import { planOf } from '../../dist/node.js';
import { cli, cliJson, tinyLlama } from './cli_process.mjs';
import { modelFor, quantizerFor } from './scratch.mjs';

const flags = ['--include-towers', '--include-experts'];

test('plan, quantize and auto take both flags', async () => {
  for (const command of ['plan', 'quantize', 'auto']) {
    const { code, stdout } = await cli([command, '--help']);
    assert.equal(code, 0);
    for (const flag of flags) assert.ok(stdout.includes(`  ${flag} `), `${command} ${flag}`);
  }
});

test('a model without towers and experts is planned alike with and without', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const plan = quantizer.plan(model, 'int8');
  assert.deepEqual(quantizer.plan(model, 'int8', { includeTowers: true, includeExperts: true }), plan);
  const { document, stderr } = await cliJson(['plan', tinyLlama, '--preset', 'int8', ...flags]);
  assert.equal(stderr, '');
  assert.deepEqual(planOf(document), plan);
});

test('shares of parameters and bytes stand under the totals', async () => {
  const { stdout } = await cli(['plan', tinyLlama, '--preset', 'int8']);
  assert.match(
    stdout,
    /^quantized: \d\d\.\d % of parameters, \d\d\.\d % of bytes\n +left +why\n( +\S+ kB .* tensors? +.*\n)+/m,
  );
});
