// A mixture of GGUF types by measured loss: within its budget, better than a recipe of its size, and a recipe itself.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

const calibration = { tokens: tokensOf('calib', 8) };
const types = ['q2_k', 'q3_k', 'iq4_xs', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl', 'q4_1', 'q5_0', 'q5_1', 'q8_0'];
const recipe = { dialect: 'gguf', recipe: 'q4_k_m' };

async function written(quantizer, model, config) {
  const out = memoryStream();
  await quantizer.quantizeModel(model, config, { target: out.stream, format: 'gguf', calibration });
  return out.bytes();
}

test('at a size of a recipe it loses less than half; the same for any number of workers', {
  timeout: 900_000,
}, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const weighted = await written(quantizer, model, recipe);
  const targetBytes = weighted.length;
  const auto = { format: 'gguf', targetBytes, calibration };
  const found = await quantizer.languageModel(model).autoConfig(auto);
  const { config, totals, layers, candidates } = found;
  assert.ok(totals.bytesAfter <= targetBytes && totals.bytesAfter > 0.97 * targetBytes, `${totals.bytesAfter}`);
  assert.deepEqual(
    candidates.map(({ dtype }) => dtype),
    types,
  );
  assert.deepEqual(
    Object.entries(config.layers),
    layers.map(({ name, chosen }) => [name.replace('.weight', ''), types[chosen]]),
  );
  assert.ok(layers.some(({ name }) => name === 'lm_head.weight') && layers.some(({ name }) => /embed/.test(name)));
  assert.ok(new Set(Object.values(config.layers)).size > 2);
  const bytes = await written(quantizer, model, quantizer.presetConfig(config, { best: true }));
  assert.equal(bytes.length, totals.bytesAfter);
  const tokens = tokensOf('validation', 12);
  const lossOf = async (file) => {
    const lm = quantizer.languageModel(await modelFor(t, quantizer, file), { source: model });
    return (await lm.evaluate({ tokens, against: model, activations: 'float32' })).divergence.meanKld;
  };
  const [before, after] = [await lossOf(weighted), await lossOf(bytes)];
  assert.ok(after <= 0.4 * before, `${before} by importance, ${after} by the mixture`);
  const alone = await quantizerFor(t, { threads: 0 });
  const again = await alone.languageModel(await modelFor(t, alone, tinyLlama)).autoConfig(auto);
  assert.deepEqual(again, found);
});

test('tensors replaced in a pass are those of the file', { timeout: 900_000 }, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const one = { tokens: tokensOf('calib', 2) };
  const source = await written(quantizer, model, { dialect: 'gguf', recipe: 'f32' });
  for (const given of [model, await modelFor(t, quantizer, source)]) {
    const auto = { format: 'gguf', targetBits: 4.5, calibration: one };
    const { config, measuredLoss } = await quantizer.languageModel(given).autoConfig(auto);
    const out = memoryStream();
    await quantizer.quantizeModel(given, config, { target: out.stream, format: 'gguf' });
    const file = quantizer.languageModel(await modelFor(t, quantizer, out.bytes()));
    const options = { ...one, against: given, activations: 'float32', scored: 'all' };
    const { meanKld } = (await file.evaluate(options)).divergence;
    assert.ok(
      Math.abs(meanKld - measuredLoss) <= 1e-5 * meanKld,
      `${measuredLoss} in the pass, ${meanKld} of the file`,
    );
  }
});

test('a loss is a limit of what is measured; the command writes a recipe', { timeout: 900_000 }, async (t) => {
  const folder = scratchFolder(t);
  const [text, mixture, output] = ['text.txt', 'mixture.json', 'out.gguf'].map((name) => join(folder, name));
  writeFileSync(
    text,
    'The history of the town begins with a mill beside the river, and with the people who built it. '.repeat(12),
  );
  const auto = ['auto', tinyLlama, '--format', 'gguf', '--text', text, '--threads', '2', '-o', mixture, '--force'];
  const { document } = await cliJson([...auto, '--max-loss', '0.02']);
  assert.ok(document.measuredLoss > 0 && document.measuredLoss <= 0.02, `${document.measuredLoss}`);
  const least = await cli([...auto, '--max-loss', '1e-9']);
  assert.equal(least.code, 1);
  assert.match(least.stderr, /maxLoss: .* out of reach/);
  const sized = await cli([...auto, '--target-size', '1.5M']);
  assert.equal(sized.code, 0, sized.stderr);
  assert.match(sized.stdout, /KLD with all of them, rounded to nearest/);
  const { code, stderr } = await cli(['quantize', tinyLlama, '-o', output, '--config', mixture]);
  assert.equal(code, 0, stderr);
  assert.ok(readFileSync(output).length <= 1.5 * 1024 * 1024);
  const twice = await cli([...auto, '--target-size', '1.5M', '--target-bpw', '4']);
  assert.equal(twice.code, 2);
});
