// GPTQ inside GGUF's blocks: less loss in as many bytes, the same for any workers, and files that load.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

const calibration = { tokens: tokensOf('calib', 8) };
const gptq = { algo_config: [{ name: 'gptq' }] };

async function ggufOf(t, quantizer, recipe, rest, options = { calibration }) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, tinyLlama);
  const report = await quantizer.quantizeModel(
    model,
    { dialect: 'gguf', recipe, ...rest },
    { target: out.stream, ...options },
  );
  return { bytes: out.bytes(), report };
}

test('error feedback loses less than importance in as many bytes', { timeout: 600_000 }, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf('validation', 12);
  const lossOf = async (bytes) => {
    const written = await modelFor(t, quantizer, bytes);
    const lm = quantizer.languageModel(written, { source: model });
    return (await lm.evaluate({ tokens, against: model, activations: 'float32' })).divergence.meanKld;
  };
  for (const [recipe, share] of [
    ['q4_0', 0.35],
    ['q4_k_m', 0.5],
    ['q2_k', 0.6],
    ['iq4_xs', 0.5],
  ]) {
    const weighted = await ggufOf(t, quantizer, recipe, {});
    const { bytes, report } = await ggufOf(t, quantizer, recipe, gptq);
    assert.equal(bytes.length, weighted.bytes.length, recipe);
    const [before, after] = [await lossOf(weighted.bytes), await lossOf(bytes)];
    assert.ok(after < share * before, `${recipe}: ${before} by importance, ${after} by feedback`);
    const note = report.diagnostics.find(({ code }) => code === 'importance-used');
    assert.match(note.message, /^\d+ tensors are quantized by the error .*none for .*token_embd\.weight/);
    const { calibration: evidence } = report.tensors.find(({ name }) => name.endsWith('0.mlp.up_proj.weight'));
    assert.ok(evidence.outputSqnrDb > evidence.nearestSqnrDb, `${recipe}: ${JSON.stringify(evidence)}`);
    if (recipe !== 'q4_0') continue;
    for (const name of ['gptaq', 'qronos']) {
      const corrected = await lossOf((await ggufOf(t, quantizer, recipe, { algo_config: [{ name }] })).bytes);
      assert.ok(corrected < share * before, `${name}: ${before} by importance, ${corrected} by feedback`);
    }
  }
});

test('the bytes are the same for any number of workers', { timeout: 600_000 }, async (t) => {
  const config = { algo_config: [{ name: 'awq' }, { name: 'gptq' }] };
  const found = [];
  for (const threads of [0, 1, 3]) {
    const quantizer = await quantizerFor(t, { threads });
    found.push((await ggufOf(t, quantizer, 'q4_k_m', config)).bytes);
  }
  assert.deepEqual(found[1], found[0]);
  assert.deepEqual(found[2], found[0]);
});

test('algorithms leave weights as they are that the types hold exactly', { timeout: 600_000 }, async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const written = async (model, config, options) => {
    const out = memoryStream();
    await quantizer.quantizeModel(model, config, { target: out.stream, format: 'gguf', ...options });
    return modelFor(t, quantizer, out.bytes());
  };
  for (const type of ['q4_0', 'q4_1']) {
    const layers = { token_embd: 'f32', output: 'f32', '*': type };
    const config = { dialect: 'gguf', recipe: type, layers };
    const rounded = await written(await modelFor(t, quantizer, tinyLlama), config);
    const model = await written(rounded, { dialect: 'gguf', recipe: 'f32' });
    const best = await written(model, quantizer.presetConfig(config, { best: true }), { calibration });
    const given = { tokens: tokensOf('validation', 4), against: model, activations: 'float32' };
    const { divergence } = await quantizer.languageModel(best, { source: model }).evaluate(given);
    assert.equal(divergence.meanKld, 0, type);
  }
});
