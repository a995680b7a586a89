// `choose: "best"` of gptq: every layer is rounded several times without a part of the calibration, and the one that changes
// the outputs for that part least is kept.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

/** As much as the mean of the Hessian's diagonal leaves little of GPTQ. */
const tooMuch = 1;
/** A difference of two models in bits per byte of this text has a standard error of 0.002 to 0.004. */
const certain = 0.01;

test('a layer is not rounded with far too large a damping if a tenth of it is better', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = scratchFolder(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf('validation', 32);
  const calibration = { tokens: tokensOf('calib', 32) };
  const { config } = quantizer.presets().find(({ name }) => name === 'int3_wo_32');
  const bits = {};
  for (const [name, options] of Object.entries({
    good: {},
    bad: { damp_percent: tooMuch },
    'best of bad': { damp_percent: tooMuch, choose: 'best' },
  })) {
    const target = join(folder, name);
    const algo_config = [{ name: 'gptq', ...options }];
    await quantizer.quantizeModel(model, { ...config, algo_config }, { target, format: 'gptq', calibration });
    const written = await modelFor(t, quantizer, target);
    bits[name] = (await quantizer.languageModel(written).evaluate({ tokens })).bitsPerByte;
  }
  t.diagnostic(JSON.stringify(bits));
  assert.ok(bits.bad > bits.good + certain, 'the given damping is bad');
  assert.ok(bits['best of bad'] < bits.bad - certain);
});

test('values other than given and best are refused, and other algorithms have no choose', async (t) => {
  const quantizer = await quantizerFor(t);
  const found = (algorithm) =>
    quantizer
      .checkConfig({ algo_config: [algorithm] })
      .filter(({ severity, where }) => severity === 'error' && where.endsWith('/choose'));
  assert.deepEqual(found({ name: 'gptq', choose: 'best' }), []);
  assert.match(found({ name: 'gptq', choose: 'fastest' })[0].message, /given or best/);
  assert.equal(found({ name: 'gpfq', choose: 'best' })[0].code, 'key-unknown');
});
