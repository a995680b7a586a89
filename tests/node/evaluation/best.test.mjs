// The recipe that loses least: what `best` of presetConfig makes of configs, what it is worth, and --best of the command line.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { perChannel, perGroup, quarkConfig } from '../../../dist/node.js';
import { cli, cliJson } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

test('every preset in the dialect of Quark, and every recipe, has a best config that is valid', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const { name, config } of quantizer.presets()) {
    if (config.recipe && !/^b?f\d+$/.test(config.recipe)) {
      const best = quantizer.presetConfig(name, { best: true });
      assert.deepEqual(best, { ...config, algo_config: best.algo_config });
      assert.equal(best.algo_config[1].refine, Number(/\d/.exec(config.recipe)[0]) <= 2 ? 2 : 1, name);
      assert.deepEqual(quantizer.checkConfig(best), [], name);
      continue;
    }
    if (!config.global_quant_config || config.dialect) {
      assert.throws(() => quantizer.presetConfig(config, { best: true }), { code: 'argument-invalid' }, name);
      continue;
    }
    const best = quantizer.presetConfig(name, { best: true });
    assert.deepEqual(best, quantizer.presetConfig(config, { best: true }));
    const { weight } = config.global_quant_config;
    // Casts, blocks and stages have no scale for columns to be rounded by, which a run says.
    const errors = quantizer.checkConfig(best).filter(({ severity }) => severity === 'error');
    assert.deepEqual(
      errors.filter(({ where }) => !where.startsWith('/algo_config')),
      [],
      name,
    );
    const isRefit = /^u?int/.test(weight.dtype) && !Array.isArray(weight) && weight.qscheme !== 'per_tensor';
    const { scale_refit = 'never', observer_cls = '' } = best.global_quant_config.weight;
    const isAlways = scale_refit === 'always';
    assert.equal(isAlways, isRefit && !weight.scale_format, name);
    // Also where the preset fits scales to their codes already: the search finds others to begin with.
    assert.equal(/MSE/.test(observer_cls), isAlways, name);
  }
});

test('values that a spec or config sets are kept', async (t) => {
  const quantizer = await quantizerFor(t);
  const own = perGroup('int4', 64, { observer_cls: 'HQQObserver', symmetric: true });
  const coarse = perGroup('int4', 32, { scale_type: 'pof2' });
  const layers = { '*.down_proj': perChannel('int8'), '*.up_proj': coarse };
  const config = { ...quarkConfig(own, { layers }), pre_quant_opt_config: [{ name: 'cle' }] };
  const best = quantizer.presetConfig(config, { best: true });
  assert.deepEqual(best.global_quant_config.weight, own);
  assert.deepEqual(best.layer_quant_config['*.up_proj'].weight, coarse);
  assert.equal(best.layer_quant_config['*.down_proj'].weight.observer_cls, 'PerChannelMSEObserver');
  assert.deepEqual(best.pre_quant_opt_config, config.pre_quant_opt_config);
  assert.throws(() => quantizer.presetConfig({ ...config, algo_config: [{ name: 'gptq' }] }, { best: true }), {
    code: 'argument-invalid',
  });
});

test('at three and at two bits the best loses much less than gptq', { timeout: 600_000 }, async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const calibration = { tokens: tokensOf('calib', 16) };
  const validation = tokensOf('validation', 24);
  const lossOf = async (name, config) => {
    const target = join(folder, name);
    await quantizer.quantizeModel(model, config, { target, format: 'quark', calibration });
    const written = await modelFor(t, quantizer, target);
    return (await quantizer.languageModel(written).evaluate({ tokens: validation })).bitsPerByte;
  };
  const float = (await quantizer.languageModel(model).evaluate({ tokens: validation })).bitsPerByte;
  for (const [preset, share] of [
    ['int3_wo_32', 0.6],
    ['int2_wo_32', 0.7],
  ]) {
    const gptq = await lossOf(`${preset} gptq`, { ...quantizer.presetConfig(preset), algo_config: [{ name: 'gptq' }] });
    const best = await lossOf(`${preset} best`, quantizer.presetConfig(preset, { best: true }));
    assert.ok(best - float < share * (gptq - float), `${preset}: best ${best}, gptq ${gptq}, float ${float}`);
  }
});

test('--best calibrates with a text, and names the inputs it needs', { timeout: 600_000 }, async (t) => {
  const folder = scratchFolder(t);
  const text = join(folder, 'text.txt');
  writeFileSync(text, 'The library rounds weights, and the text shows it which inputs matter. '.repeat(40));
  const out = join(folder, 'out');
  const quantize = ['quantize', tinyLlama, '-o', out];
  const done = await cliJson([...quantize, '-p', 'int4_wo_64', '-f', 'quark', '--calibration', text, '--best']);
  assert.equal(done.code, 0, done.stderr);
  const calibrated = done.document.tensors.filter(({ calibration }) => calibration);
  assert.ok(calibrated.length >= 28, `${calibrated.length} layers`);
  const without = await cli([...quantize, '-p', 'int4_wo_64', '--best']);
  assert.match(without.stderr, /--best needs a calibration text/);
  assert.notEqual(without.code, 0);
  const ofRecipe = (recipe) => [
    'quantize',
    tinyLlama,
    '-o',
    `${out}.gguf`,
    '-p',
    recipe,
    '--calibration',
    text,
    '--best',
  ];
  const recipe = await cliJson(ofRecipe('q4_k_m'));
  assert.equal(recipe.code, 0, recipe.stderr);
  assert.equal(recipe.document.tensors.filter(({ calibration }) => calibration).length, 28);
  const floats = await cli(ofRecipe('f16'));
  assert.match(floats.stderr, /f16 rounds nothing/);
  assert.notEqual(floats.code, 0);
});
