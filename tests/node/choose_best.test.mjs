// `choose: "best"` of gptq: every layer is rounded several times, and the best of them is kept.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';

const reference = join(files, 'tiny-llama-reference');

test('the best of some variants is better for the layers of the first input, and for the whole model', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = scratchFolder(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, join(reference, 'validation_tokens.safetensors'));
  const calibration = { tokens: await modelFor(t, quantizer, join(reference, 'calib_tokens.safetensors')) };
  const { config } = quantizer.presets().find(({ name }) => name === 'int3_wo_32');
  const reports = {};
  const bits = {};
  for (const choose of ['given', 'best']) {
    const target = join(folder, choose);
    const algo_config = [{ name: 'gptq', choose }];
    reports[choose] = await quantizer.quantizeModel(
      model,
      { ...config, algo_config },
      { target, format: 'gptq', calibration },
    );
    bits[choose] = (
      await quantizer.languageModel(await modelFor(t, quantizer, target)).evaluate({ tokens })
    ).bitsPerByte;
  }
  const sqnrOf = (choose, layer) =>
    reports[choose].tensors.find(({ name }) => name === `model.layers.0.self_attn.${layer}.weight`).calibration
      .outputSqnrDb;
  const layers = ['q_proj', 'k_proj', 'v_proj'];
  for (const layer of layers) assert.ok(sqnrOf('best', layer) >= sqnrOf('given', layer), layer);
  assert.ok(layers.some((layer) => sqnrOf('best', layer) > sqnrOf('given', layer)));
  t.diagnostic(`bits per byte: given ${bits.given}, best ${bits.best}`);
  assert.ok(bits.best < bits.given, `bits per byte: given ${bits.given}, best ${bits.best}`);
});

test('other words than given and best are refused, and other algorithms have no choose', async (t) => {
  const quantizer = await quantizerFor(t);
  const found = (algorithm) =>
    quantizer
      .checkConfig({ algo_config: [algorithm] })
      .filter(({ severity, where }) => severity === 'error' && where.endsWith('/choose'));
  assert.deepEqual(found({ name: 'gptq', choose: 'best' }), []);
  assert.match(found({ name: 'gptq', choose: 'fastest' })[0].message, /given or best/);
  assert.equal(found({ name: 'gpfq', choose: 'best' })[0].code, 'key-unknown');
});
