// convertConfig to formats with one scheme: what it changes is named, and the converted config plans on the same model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelFor, quantizerFor } from './scratch.mjs';
import { noise, safetensors } from './written_model.mjs';

const tensor = (shape) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    1,
  ),
});
const model = safetensors({ 'a.up_proj.weight': tensor([64, 64]), 'vision.conv.weight': tensor([8, 4, 3, 3]) });
const groups = (dtype, more) => ({ dtype, qscheme: 'per_group', ch_axis: -1, group_size: 32, ...more });

test('asymmetric signed integers become unsigned ones, which is named', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [to, key] of [
    ['gptq', 'sym'],
    ['awq', 'zero_point'],
  ])
    for (const symmetric of [false, true]) {
      const config = { global_quant_config: { weight: groups('int4', { symmetric }) }, exclude: [] };
      const { losses, config: written } = quantizer.convertConfig(config, to);
      const named = losses.filter(({ message }) => message.includes('int4 becomes uint4'));
      assert.equal(named.length, symmetric ? 0 : 1, to);
      assert.equal(written[key], key === 'sym' ? symmetric : !symmetric);
    }
});

test('a scheme that covers more layers than the config still plans: their groups fall back, which is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const opened = await modelFor(t, quantizer, model);
  const weight = groups('int4', { symmetric: true });
  for (const [config, to] of [
    [{ global_quant_config: { weight }, exclude: ['*vision.[a-z]*'] }, 'awq'],
    [{ global_quant_config: { weight }, exclude: ['*'] }, 'awq'],
    [{ layer_type_quant_config: { Linear: { weight } }, exclude: [] }, 'gptq'],
    [{ global_quant_config: { weight: { dtype: 'mx', mx_element_dtype: 'int8' } }, exclude: [] }, 'gptq'],
  ]) {
    const { losses, config: written } = quantizer.convertConfig(config, to);
    assert.equal(written.indivisible_groups, 'fallback');
    assert.ok(losses.some(({ message }) => message.includes('the scheme covers more layers in')));
    const rows = quantizer.plan(opened, written, { format: 'fake-quantized' }).tensors;
    assert.deepEqual(
      rows.map(({ spec }) => spec?.qscheme),
      ['per_group', 'per_channel'],
    );
  }
  const exact = quantizer.convertConfig({ global_quant_config: { weight }, exclude: ['vision.conv'] }, 'gptq');
  assert.equal(exact.config.indivisible_groups, undefined, 'what the dialect says keeps its error');
});

test('compressed-tensors: asymmetric signed integers are read back as unsigned ones, which is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0, symmetric: false };
  const { losses } = quantizer.convertConfig({ global_quant_config: { weight }, exclude: [] }, 'compressed-tensors');
  assert.ok(losses.some(({ message }) => message.includes('int4 is read back as uint4')));
});

test('groups of whole rows are written as channels, which is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'fp8_e4m3', qscheme: 'per_group', ch_axis: -1, group_size: -1 };
  const { losses } = quantizer.convertConfig({ global_quant_config: { weight }, exclude: [] }, 'compressed-tensors');
  assert.ok(losses.some(({ message }) => message.startsWith('groups of whole rows are written as channels')));
});
