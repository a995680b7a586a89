// Scales that are fit to their codes: what files hold, what it gains on a trained model, what is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { firstBlocks, tokensOf } from '../tiny_llama.mjs';

const group = (dtype, rest = {}) => ({ dtype, qscheme: 'per_group', ch_axis: -1, group_size: 32, ...rest });
const configOf = (weight, rest = {}) => ({ global_quant_config: { weight }, exclude: ['lm_head'], ...rest });

test("refit scales are stored exactly, in the file's dtype, and are never worse", async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const bf16 = await modelFor(t, quantizer, join(tinyLlama, 'bf16'));
  for (const [format, spec] of [
    ['compressed-tensors', group('int4', { symmetric: true, scale_sign: 'signed' })],
    ['gptq', group('int3', { symmetric: true })],
    ['gptq', group('int2', { symmetric: true, scale_sign: 'signed' })],
    ['quark', group('uint4', { symmetric: false })],
  ]) {
    const errors = [];
    for (const scale_refit of ['never', 'always']) {
      const target = join(folder, `${format}-${spec.dtype}-${scale_refit}`);
      const report = await quantizer.quantizeModel(bf16, configOf({ ...spec, scale_refit }), { target, format });
      errors.push(report.tensors.flatMap(({ name, error }) => (error ? [[name, error.mse]] : [])));
      const written = await modelFor(t, quantizer, target);
      const compared = await quantizer.compare(bf16, written);
      for (const [name, mse] of errors.at(-1)) {
        const other = compared.tensors.find((row) => row.name === name);
        assert.ok(Math.abs(other.error.mse - mse) <= mse * 1e-6, `${name} as read: ${other.error.mse}, written ${mse}`);
      }
    }
    const [before, after] = errors;
    assert.ok(after.length > 20);
    for (const [i, [name, mse]] of after.entries()) assert.ok(mse <= before[i][1], `${format} ${name}`);
    assert.ok(after.some(([, mse], i) => mse < 0.95 * before[i][1]) || spec.dtype.endsWith('4'), format);
  }
});

test('one tensor and a file get the same scales', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = readTensors(join(tinyLlama, 'model.safetensors')).get('model.layers.0.mlp.down_proj.weight');
  const spec = group('int3', { symmetric: true, scale_sign: 'signed', scale_refit: 'always' });
  const one = quantizer.quantize({ data: Float32Array.from(weight.data), shape: weight.shape }, spec);
  const target = join(scratchFolder(t), 'gptq');
  const model = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(model, configOf(spec), { target, format: 'fake-quantized' });
  const stored = readTensors(join(target, 'model.safetensors')).get('model.layers.0.mlp.down_proj.weight');
  assert.deepEqual(quantizer.dequantize(one), Float32Array.from(stored.data));
});

test('presets of 2 and 3 bits on tiny-llama, rounded to nearest and with gptq', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = scratchFolder(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf('validation', 32);
  const calibration = { tokens: tokensOf('calib', 32) };
  const { config: int2 } = quantizer.presets().find(({ name }) => name === 'int2_wo_32');
  for (const [name, config, most] of [
    ['int3', 'int3_wo_32', 1.497],
    ['int2', 'int2_wo_32', 1.668],
    ['int2-gptq', { ...int2, algo_config: [{ name: 'gptq' }] }, 1.565],
  ]) {
    const target = join(folder, name);
    await quantizer.quantizeModel(model, config, {
      target,
      format: 'fake-quantized',
      ...(config.algo_config && { calibration }),
    });
    const { bitsPerByte } = await quantizer.languageModel(await modelFor(t, quantizer, target)).evaluate({ tokens });
    assert.ok(bitsPerByte <= most, `${name}: ${bitsPerByte}`);
  }
});

test('refit when calibrated: it changes what gptq rounds, and nothing without data', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const model = await modelFor(t, quantizer, firstBlocks(t, 1, 128));
  const calibration = { tokens: tokensOf('calib', 1) };
  const spec = group('int4', { symmetric: true, scale_sign: 'signed' });
  const written = async (name, weight, algorithms = []) => {
    const target = join(folder, name);
    const config = configOf(weight, { algo_config: algorithms.map((algorithm) => ({ name: algorithm })) });
    await quantizer.quantizeModel(model, config, {
      target,
      format: 'fake-quantized',
      ...(algorithms.length > 0 && { calibration }),
    });
    return readFileSync(join(target, 'model.safetensors'));
  };
  const calibrated = { ...spec, scale_refit: 'calibrated' };
  assert.deepEqual(await written('near-calibrated', calibrated), await written('near', spec));
  assert.deepEqual(await written('awq-calibrated', calibrated, ['awq']), await written('awq', spec, ['awq']));
  for (const name of ['gptq', 'gptaq', 'qronos', 'gpfq']) {
    const one = await written(`${name}-calibrated`, calibrated, [name]);
    assert.deepEqual(one, await written(`${name}-refit`, { ...spec, scale_refit: 'always' }, [name]), name);
    assert.notDeepEqual(one, await written(name, spec, [name]), name);
  }
});

test('specs that cannot be refit are refused, with the reason', async (t) => {
  const quantizer = await quantizerFor(t);
  const refused = (weight, rest = {}) => {
    const found = quantizer.checkConfig({ global_quant_config: { weight, ...rest } });
    return found.filter(({ severity, where }) => severity === 'error' && /_refit$/.test(where));
  };
  const [{ where }] = refused(group('int16', { symmetric: true, scale_refit: 'calibrated' }));
  assert.match(where, /\/scale_refit$/);
  const [word] = refused(group('int4', { symmetric: true, scale_refit: 'sometimes' }));
  assert.match(`${word.message} ${word.hint}`, /never.*calibrated.*always/);
  const [kind] = refused(group('int4', { symmetric: true, scale_refit: true }));
  assert.ok(kind, 'a boolean is refused');
  const good = group('int3', { symmetric: true, scale_refit: 'always' });
  assert.deepEqual(refused(good), []);
  assert.deepEqual(refused({ ...good, observer_cls: 'PerGroupMSEObserver', observer_options: { weighted: true } }), []);
  for (const [change, reason] of [
    [{ dtype: 'int16' }, /2 to 8 bits/],
    [{ dtype: 'fp4' }, /2 to 8 bits/],
    [{ dtype: 'uint4', symmetric: false, zero_point_type: 'float32' }, /whole zero points/],
    [{ scale_type: 'float8_e8m0fnu' }, /too coarse/],
    [{ observer_cls: 'HQQObserver' }, /minimize the squared error/],
    [{ round_method: 'floor' }, /round_half_even/],
    [{ qscheme: 'per_tensor', group_size: null, ch_axis: null }, /per channel or per group/],
  ]) {
    const [error] = refused({ ...good, ...change });
    assert.match(error?.message ?? 'nothing', reason, JSON.stringify(change));
    assert.ok(error.hint, 'what to do');
  }
  const input = { ...good, dtype: 'int8', qscheme: 'per_channel', ch_axis: 1, group_size: null, is_dynamic: true };
  const found = quantizer.checkConfig({ global_quant_config: { weight: good, input_tensors: input } });
  assert.ok(found.some(({ where, message }) => where.endsWith('input_tensors/scale_refit') && /weights/.test(message)));
});

test('a conversion reports that the refit is lost, and a quark file does not mention it', async (t) => {
  const quantizer = await quantizerFor(t);
  const config = configOf(group('int4', { symmetric: true, scale_refit: 'always' }));
  const { losses } = quantizer.convertConfig(config, 'compressed-tensors');
  assert.ok(losses.some(({ message }) => /refit/.test(message)));
  assert.equal(quantizer.parseConfig(config).config.global_quant_config.weight.scale_refit, 'always');
});
