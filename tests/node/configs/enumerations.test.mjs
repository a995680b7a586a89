// Enumerations, classes and observers as people copy them from Python, from documentation and from reprs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';

const spec = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1 };
const quark = (weight, rest = {}) => ({ global_quant_config: { weight: { ...spec, ...weight } }, ...rest });

/** Of each key: what it means, and other spellings of it. */
const spellings = {
  dtype: ['int4', 'Dtype.int4', 'INT4', "<Dtype.int4: 'int4'>", 'quark.torch.quantization.Dtype.int4'],
  qscheme: ['per_group', 'QSchemeType.per_group', "<QSchemeType.per_group: 'per_group'>"],
  round_method: ['half_even', 'RoundType.half_even', '<RoundType.half_even: 8>', 'HALF_EVEN'],
  scale_type: ['float', 'ScaleType.float', "<ScaleType.float: 'float'>"],
  zero_point_type: ['int32', 'ZeroPointType.int32'],
  observer_cls: [
    'PerGroupMinMaxObserver',
    'quark.torch.quantization.observer.observer.PerGroupMinMaxObserver',
    "<class 'quark.torch.quantization.observer.observer.PerGroupMinMaxObserver'>",
  ],
};

test('members of enumerations are read in the forms that Quark prints and documents', async (t) => {
  const quantizer = await quantizerFor(t);
  const meaning = (config) => quantizer.convertConfig(config, 'compressed-tensors').config;
  for (const [key, [plain, ...others]] of Object.entries(spellings)) {
    for (const other of others) {
      const config = quark({ [key]: other });
      assert.deepEqual(quantizer.checkConfig(config), [], other);
      assert.deepEqual(meaning(config), meaning(quark({ [key]: plain })), other);
    }
  }
  for (const device of ['cpu', 'CPU', 'gpu', 'GPU', 'ipu', 'DeviceType.CPU']) {
    const config = { global_quant_config: { weight: spec, target_device: device } };
    const codes = quantizer.checkConfig(config).map(({ severity, code }) => `${severity} ${code}`);
    assert.deepEqual(codes, ['note no-effect'], device);
  }
});

test('classes are read under their names in torch, in Keras and as Python prints them', async (t) => {
  const quantizer = await quantizerFor(t);
  const names = {
    Linear: ['nn.Linear', 'torch.nn.Linear', "<class 'torch.nn.modules.linear.Linear'>", 'Dense', 'linear'],
    Conv2d: ['Conv2D', "<class 'torch.nn.modules.conv.Conv2d'>"],
  };
  for (const [name, others] of Object.entries(names)) {
    const inQuark = (type) => ({ layer_type_quant_config: { [type]: { weight: spec } } });
    const inAihwkit = (type) => ({
      dialect: 'aihwkit',
      module_qconfig_map: { [type]: { module_qconfig: { weight_quant: { n_bits: 8 } } } },
    });
    const meaning = (config) => quantizer.convertConfig(config, 'compressed-tensors').config;
    for (const other of others) {
      assert.deepEqual(meaning(inQuark(other)), meaning(inQuark(name)), other);
      if (/^(Dense|linear|Conv2D)$/.test(other)) continue;
      assert.deepEqual(meaning(inAihwkit(other)), meaning(inAihwkit(name)), other);
    }
  }
});

test('the other dialects read their enumerations in the same ways', async (t) => {
  const quantizer = await quantizerFor(t);
  const brevitas = (weight) => ({ dialect: 'brevitas', pre_quant_opt_config: [], global_quant_config: { weight } });
  const same = (a, b) => assert.deepEqual(quantizer.parseConfig(a).config, quantizer.parseConfig(b).config);
  same(brevitas({ quant_type: 'QuantType.int_quant' }), brevitas({ quant_type: 'int_quant' }));
  same(brevitas({ param_type: '<ParamType.mse: 2>' }), brevitas({ param_type: 'mse' }));
  same(brevitas({ qscheme: 'PER_CHANNEL' }), brevitas({ qscheme: 'per_channel' }));
  const aihwkit = (range_estimator) => ({
    dialect: 'aihwkit',
    module_qconfig_map: { Linear: { module_qconfig: { weight_quant: { n_bits: 8, range_estimator } } } },
  });
  for (const name of ['RangeEstimators.MSE', '<RangeEstimators.MSE: 3>', 'mse']) same(aihwkit(name), aihwkit('MSE'));
});

test('a misspelt word gets the nearest known one as a hint', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [config, hint] of [
    [quark({ dtype: 'Dtype.itn4' }), /int4/],
    [quark({ qscheme: 'QSchemeType.per_grp' }), /per_group/],
    [quark({ observer_cls: 'observer.PerGroupMinMaxObservr' }), /PerGroupMinMaxObserver/],
  ]) {
    const [problem] = quantizer.checkConfig(config);
    assert.equal(problem.severity, 'error');
    assert.match(problem.hint, hint);
  }
});

test('a config of the Brevitas extension is recognised by its algorithms, and an empty spec gets a hint', async (t) => {
  const quantizer = await quantizerFor(t);
  const config = { global_quant_config: { weight: {} }, algo_config: [{ name: 'GPFQ' }] };
  assert.match(quantizer.checkConfig(config)[0].message, /GPFQ needs quantized inputs/);
  const [problem] = quantizer.checkConfig({ global_quant_config: { weight: {} } });
  assert.match(problem.hint, /"dialect": "brevitas"/);
});

test('values of the wrong type in algorithms say what was expected', async (t) => {
  const quantizer = await quantizerFor(t);
  const first = (config) => quantizer.checkConfig(config)[0];
  const smooth = quark({}, { pre_quant_opt_config: [{ name: 'smoothquant', embedding_layers: null, alpha: '1' }] });
  assert.equal(first(smooth).message, 'expected a number, found a string');
  const listed = { dialect: 'brevitas', global_quant_config: { weight: {} }, pre_quant_opt_config: ['Preprocess'] };
  assert.equal(first(listed).message, 'expected an object with a name, found a string "Preprocess"');
  const embedding = { name: 'smoothquant', embedding_layers: ['model.embed_tokens'] };
  const [remark] = quantizer.checkConfig(quark({}, { pre_quant_opt_config: [embedding] }));
  assert.deepEqual([remark.severity, remark.code], ['note', 'no-effect']);
  assert.match(remark.message, /embedding_layers/);
});
