// Presets and recipes by name: what a name stands for, what is said where there is none.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

test('presets pass their own check and name themselves', async (t) => {
  const quantizer = await quantizerFor(t);
  const presets = quantizer.presets();
  assert.ok(presets.length >= 8);
  for (const { name, title, description, config } of presets) {
    assert.ok(name && title && description);
    assert.deepEqual(
      quantizer.checkConfig(config).filter((found) => found.severity === 'error'),
      [],
      name,
    );
    assert.deepEqual(quantizer.parseConfig(name).config, quantizer.parseConfig(config).config, name);
  }
});

test('an unknown preset is config-invalid, and the message names the nearest and all presets', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.throws(() => quantizer.parseConfig('int5_wo'), { code: 'config-invalid', message: /int4_wo_128/ });
  const model = await modelFor(t, quantizer, tinyLlama);
  const unknown = (error) => {
    assert.equal(error.code, 'config-invalid');
    const [{ severity, code, where, hint }] = error.diagnostics;
    assert.deepEqual([severity, code, where], ['error', 'preset-unknown', '']);
    assert.match(hint, /"int4_wo_128"/);
    return true;
  };
  await assert.rejects(() => quantizer.plan(model, 'int4_wo_129'), unknown);
  await assert.rejects(quantizer.preview(model, 'int4_wo_129', []), unknown);
  const target = join(scratchFolder(t), 'out');
  await assert.rejects(quantizer.quantizeModel(model, ' int4_wo_129\n', { target }), unknown);
  assert.ok(!existsSync(target));
});

test('a name shared by a preset and a recipe means the recipe only for GGUF output', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const types = async (...given) =>
    new Set((await quantizer.plan(model, ...given)).tensors.map(({ spec }) => spec?.dtype));
  assert.ok((await types('mxfp4')).has('fp4'));
  assert.ok((await types('mxfp4', { format: 'gguf' })).has('mxfp4'));
  const rows = quantizer.presets().map(({ name }) => name);
  assert.equal(new Set(rows).size, rows.length);
});

test('presets of symmetric integers of at most 4 bits have signed scales, and write them', async (t) => {
  const quantizer = await quantizerFor(t);
  const weights = quantizer.presets().map(({ name, config }) => [name, config.global_quant_config?.weight]);
  const signed = weights
    .filter(([, weight]) => weight?.scale_sign === 'signed' && weight.symmetric)
    .map(([name]) => name);
  const of3Bits = ['int3_wo_32', 'int3_wo_64', 'int3_wo_128'];
  assert.deepEqual(signed, [
    ...['int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'int4_wo_per_channel', 'int4_wa_64'],
    ...of3Bits,
    ...['int2_wo_32', 'int2_wo_64'],
  ]);
  const model = await modelFor(t, quantizer, tinyLlama);
  for (const name of signed) {
    const specs = (await quantizer.plan(model, name, { format: 'fake-quantized' })).tensors.flatMap(
      ({ spec }) => spec ?? [],
    );
    assert.ok(specs.length > 0, name);
    assert.ok(
      specs.every(({ scale_sign }) => scale_sign === 'signed'),
      name,
    );
    assert.ok(
      specs.every(({ scale_refit }) => (scale_refit === 'always') === of3Bits.includes(name)),
      name,
    );
    assert.ok(
      specs.every(({ scale_refit }) => (scale_refit === 'calibrated') === name.startsWith('int4')),
      name,
    );
  }
});
