// Configs of other dialects through the API: recognised, checked, parsed, converted, planned.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const linear = { module_qconfig: { weight_quant: { n_bits: 4, per_channel: true } } };
const configs = {
  quark: { global_quant_config: { weight: { dtype: 'int8' } } },
  aihwkit: { module_qconfig_map: { Linear: linear } },
  brevitas: { global_quant_config: { weight: { bit_width: 4 } }, pre_quant_opt_config: [] },
  'compressed-tensors': { config_groups: { g: { targets: ['Linear'], weights: { num_bits: 8 } } } },
  gptq: { quant_method: 'gptq', bits: 4, group_size: 64 },
  awq: { quant_method: 'awq', bits: 4, group_size: 64 },
  fp8: { quant_method: 'fp8', activation_scheme: 'dynamic' },
};

test('every dialect is recognised and its config completed with defaults', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [dialect, config] of Object.entries(configs)) {
    const parsed = quantizer.parseConfig(config);
    assert.equal(parsed.dialect, dialect);
    assert.deepEqual(
      quantizer.checkConfig(parsed.config).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
    assert.equal(quantizer.parseConfig({ model_type: 'x', quantization_config: config }).dialect, dialect);
  }
  assert.equal(quantizer.parseConfig(configs.aihwkit).config.module_qconfig_map.Linear.quantized_module, 'QuantLinear');
});

test('the dialect that is asked for must be the one that the config names', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.equal(quantizer.parseConfig({ bits: 4 }, { dialect: 'awq' }).dialect, 'awq');
  assert.throws(() => quantizer.parseConfig(configs.gptq, { dialect: 'awq' }), { code: 'config-invalid' });
});

test('a config says whether its algorithms need tokens', async (t) => {
  const quantizer = await quantizerFor(t);
  const { $defs } = JSON.parse(readFileSync(new URL('../../../dist/schema/quark.json', import.meta.url), 'utf8'));
  const names = $defs.Algorithm.anyOf.flatMap(({ properties }) => properties.name.enum);
  const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };
  const refused = ['svdquant', 'autoround', 'twobitscalar'];
  const configOf = (name) => {
    const algorithm = { name, ...(/^(rotation|quarot)$/.test(name) && { scaling_layers }) };
    return { ...configs.quark, algo_config: [algorithm] };
  };
  const without = names.filter((name) => !refused.includes(name) && !quantizer.parseConfig(configOf(name)).needsTokens);
  assert.deepEqual(without, ['rotation', 'quarot', 'cle', 'merge_batch_norm']);
  for (const name of refused)
    assert.throws(
      () => quantizer.parseConfig(configOf(name)),
      ({ diagnostics: [{ code, where }] }) => code === 'not-implemented' && where === '/algo_config/0',
    );
  const brevitas = { ...configs.brevitas, algo_config: [{ name: 'GPTQ' }] };
  assert.ok(quantizer.parseConfig(brevitas).needsTokens);
  for (const config of Object.values(configs)) assert.equal(quantizer.parseConfig(config).needsTokens, false);
});

test('conversions list their losses', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [from, config] of Object.entries(configs)) {
    for (const to of ['quark', 'aihwkit', 'brevitas', 'compressed-tensors']) {
      const { config: converted, losses } = quantizer.convertConfig(config, to);
      assert.equal(quantizer.parseConfig(converted).dialect, to, `${from} to ${to}`);
      if (from === to) assert.deepEqual(losses, []);
    }
  }
  assert.throws(() => quantizer.convertConfig(configs.fp8, 'gptq'), { code: 'config-invalid' });
});

test("imported model configs are planned, with reasons in the config's own terms", async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { tensors } = await quantizer.plan(model, {
    config_groups: { g: { targets: ['re:.*_proj$'], weights: { num_bits: 8 } } },
  });
  const byName = (ending) => tensors.find(({ name }) => name.endsWith(ending));
  assert.deepEqual(byName('q_proj.weight').reason, {
    rule: 'layer-glob',
    where: '/config_groups/g/weights',
    text: 'pattern "re:.*_proj$" of config_groups is the first that matches this layer',
  });
  assert.equal(byName('embed_tokens.weight').reason.rule, 'no-config');
});
