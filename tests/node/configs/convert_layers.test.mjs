// convertConfig to formats with one scheme: what it changes is named, and the converted config plans on the same model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

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

test('asymmetric signed integers become unsigned ones, with a note', async (t) => {
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

test('a scheme that covers more layers than the config still plans: their groups fall back, with a note', async (t) => {
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
    const rows = (await quantizer.plan(opened, written, { format: 'fake-quantized' })).tensors;
    assert.deepEqual(
      rows.map(({ spec }) => spec?.qscheme),
      ['per_group', 'per_channel'],
    );
  }
  const exact = quantizer.convertConfig({ global_quant_config: { weight }, exclude: ['vision.conv'] }, 'gptq');
  assert.equal(exact.config.indivisible_groups, undefined, 'what the dialect says keeps its error');
});

test('compressed-tensors: asymmetric signed integers read back as unsigned ones, with a note', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0, symmetric: false };
  const { losses } = quantizer.convertConfig({ global_quant_config: { weight }, exclude: [] }, 'compressed-tensors');
  assert.ok(losses.some(({ message }) => message.includes('int4 is read back as uint4')));
});

test('groups of whole rows are written as channels, with a note', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [dtype, to] of [
    ['fp8_e4m3', 'compressed-tensors'],
    ['uint8', 'gptq'],
    ['uint4', 'awq'],
  ]) {
    const weight = { dtype, qscheme: 'per_group', ch_axis: -1, group_size: -1 };
    const { losses } = quantizer.convertConfig({ global_quant_config: { weight }, exclude: [] }, to);
    assert.ok(losses.some(({ message }) => message.startsWith('groups of whole rows are written as channels')));
  }
});

test('every dtype with every scheme: the converted config has the same spec, or a loss is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const opened = await modelFor(t, quantizer, model);
  const planned = async (config) =>
    (await quantizer.plan(opened, config, { format: 'fake-quantized' })).tensors.find(({ name }) =>
      name.startsWith('a.'),
    ).spec;
  const attempt = async (make) => {
    try {
      return await make();
    } catch (error) {
      assert.ok(['config-invalid', 'format-unsupported'].includes(error.code), error.message);
      return null;
    }
  };
  const schemes = [
    { qscheme: 'per_tensor' },
    { qscheme: 'per_channel', ch_axis: 0 },
    { qscheme: 'per_group', ch_axis: -1, group_size: 32 },
    { qscheme: 'per_group', ch_axis: -1, group_size: -1 },
    { qscheme: 'per_block', block_size: [16, 16] },
  ];
  const differing = [];
  let same = 0;
  for (const dtype of ['int2', 'int3', 'int4', 'uint4', 'int8', 'uint8', 'fp4', 'fp6_e2m3', 'fp8_e4m3', 'fp8_e5m2'])
    for (const scheme of schemes) {
      const config = { layer_quant_config: { 'a.up_proj': { weight: { dtype, ...scheme } } } };
      const before = await attempt(() => planned(config));
      if (!before) continue;
      for (const to of ['quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq']) {
        const converted = await attempt(() => quantizer.convertConfig(config, to));
        if (!converted) continue;
        const after = await attempt(() => planned(converted.config));
        const keys = Object.keys(before).filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after?.[key]));
        if (keys.length === 0) same++;
        else if (converted.losses.length === 0) differing.push(`${dtype} ${scheme.qscheme} to ${to}: ${keys}`);
      }
    }
  assert.deepEqual(differing, []);
  assert.ok(same > 40, `${same} conversions are the same`);
});
