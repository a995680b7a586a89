// GGUF files as sources of calibration: the same bytes as from the folders that they were made from.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';
import { mixtureTokens, writeTinyMixture } from '../tiny_mixture.mjs';

const gguf = (recipe, rest = {}) => ({ dialect: 'gguf', recipe, ...rest });
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };

async function bytesOf(quantizer, model, config, options = {}) {
  const out = memoryStream();
  await quantizer.quantizeModel(model, config, { target: out.stream, format: 'gguf', ...options });
  return out.bytes();
}

/** A sum of each tensor's bytes; keys of files made from folders and from files differ. */
async function tensorsOf(t, quantizer, bytes) {
  const { tensors } = await modelFor(t, quantizer, bytes);
  const sum = ({ begin, end }) => createHash('sha256').update(bytes.subarray(begin, end)).digest('hex');
  return Object.fromEntries(tensors.map((tensor) => [tensor.name, sum(tensor)]));
}

test('algorithms and importance: the tensors of the folder, for any number of workers', {
  timeout: 600_000,
}, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = await modelFor(t, quantizer, tinyLlama);
  const whole = await bytesOf(quantizer, folder, gguf('f32'));
  const file = await modelFor(t, quantizer, whole);
  const calibration = { tokens: tokensOf('calib', 4) };
  const rotation = { name: 'rotation', scaling_layers, r2: true };
  for (const config of [
    quantizer.presetConfig(gguf('q4_k_m'), { best: true }),
    gguf('q2_k', { algo_config: [{ name: 'gptaq' }] }),
    gguf('q4_0', { pre_quant_opt_config: [rotation, { name: 'smooth' }] }),
    gguf('q3_k_m'),
  ]) {
    const wanted = await tensorsOf(t, quantizer, await bytesOf(quantizer, folder, config, { calibration }));
    const bytes = await bytesOf(quantizer, file, config, { calibration });
    assert.deepEqual(await tensorsOf(t, quantizer, bytes), wanted, JSON.stringify(config));
    if (config.recipe !== 'q4_k_m') continue;
    for (const threads of [0, 1, 3]) {
      const other = await quantizerFor(t, { threads });
      const again = await modelFor(t, other, whole);
      assert.deepEqual(await bytesOf(other, again, config, { calibration }), bytes, `${threads} workers`);
    }
  }
  const matrices = [folder, file].map((model) => quantizer.languageModel(model).importance({ calibration }));
  const [expected, found] = await Promise.all(matrices);
  assert.deepEqual(found, expected);
});

test('mixtures need their folder, and are then run and calibrated as it is', { timeout: 600_000 }, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const path = join(scratchFolder(t), 'mixture');
  writeTinyMixture(path);
  const source = await modelFor(t, quantizer, path);
  const file = await modelFor(t, quantizer, await bytesOf(quantizer, source, gguf('f32')));
  const tokens = mixtureTokens(4);
  await assert.rejects(quantizer.languageModel(file).evaluate({ tokens }), {
    code: 'not-implemented',
    message: /folder/,
  });
  const expected = await quantizer.languageModel(source).evaluate({ tokens });
  const found = await quantizer.languageModel(file, { source }).evaluate({ tokens });
  assert.deepEqual(found.sequenceLosses, expected.sequenceLosses);
  const quantized = await modelFor(t, quantizer, await bytesOf(quantizer, source, gguf('q8_0')));
  const { divergence } = await quantizer
    .languageModel(quantized, { source })
    .evaluate({ tokens, against: source, activations: 'float32' });
  assert.ok(divergence.meanKld > 0 && divergence.meanKld < 0.01, `${divergence.meanKld}`);
  for (const config of [gguf('q4_0', { algo_config: [{ name: 'gptq' }] }), gguf('q4_0')]) {
    const wanted = await bytesOf(quantizer, source, config, { calibration: { tokens } });
    const bytes = await bytesOf(quantizer, file, config, { calibration: { tokens, source } });
    assert.deepEqual(await tensorsOf(t, quantizer, bytes), await tensorsOf(t, quantizer, wanted));
  }
  await assert.rejects(bytesOf(quantizer, file, gguf('q4_0'), { calibration: { tokens, source: {} } }), {
    where: 'source',
  });
});

test('the command takes the tokenizer of the file', { timeout: 600_000 }, async (t) => {
  const folder = scratchFolder(t);
  const [whole, text, ...outputs] = ['whole.gguf', 'text.txt', 'a.gguf', 'b.gguf'].map((name) => join(folder, name));
  writeFileSync(
    text,
    'The history of the town begins with a mill beside the river, and with the people who built it. '.repeat(60),
  );
  const run = async (...args) => {
    const { code, stderr } = await cli(['quantize', ...args, '--threads', '2']);
    assert.equal(code, 0, stderr);
  };
  await run(tinyLlama, '-o', whole, '--preset', 'f32');
  const best = ['--preset', 'q4_k_m', '--calibration', text, '--best'];
  await run(tinyLlama, '-o', outputs[0], ...best);
  await run(whole, '-o', outputs[1], ...best);
  const quantizer = await quantizerFor(t);
  const [expected, found] = await Promise.all(outputs.map((path) => tensorsOf(t, quantizer, readFileSync(path))));
  assert.deepEqual(found, expected);
});
