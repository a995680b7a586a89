// Enumerations, classes and observers as people copy them from Python, from documentation and from reprs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Ajv2020 from 'ajv/dist/2020.js';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const spec = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1 };
const quark = (weight, rest = {}) => ({ global_quant_config: { weight: { ...spec, ...weight } }, ...rest });

const schema = JSON.parse(readFileSync(join(import.meta.dirname, '../../../dist/schema/quark.json'), 'utf8'));
const fitsSchema = new Ajv2020().compile(schema);

/** Of each key: what it means, and other spellings of it. */
const spellings = {
  dtype: ['int4', 'Dtype.int4', 'INT4', "<Dtype.int4: 'int4'>", 'quark.torch.quantization.Dtype.int4'],
  qscheme: ['per_group', 'QSchemeType.per_group', "<QSchemeType.per_group: 'per_group'>"],
  round_method: ['half_even', 'RoundType.half_even', '<RoundType.half_even: 8>', 'HALF_EVEN'],
  scale_type: ['float', 'ScaleType.float', "<ScaleType.float: 'float'>"],
  zero_point_type: ['int32', 'ZeroPointType.int32'],
  observer_cls: [
    'PerGroupMinMaxObserver',
    'pergroupminmaxobserver',
    'PerGroupMinMax',
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
      assert.ok(fitsSchema(config), `the schema marks ${key} ${other}`);
      assert.deepEqual(meaning(config), meaning(quark({ [key]: plain })), other);
    }
  }
  for (const device of ['cpu', 'CPU', 'gpu', 'GPU', 'ipu', 'DeviceType.CPU']) {
    const config = { global_quant_config: { weight: spec, target_device: device } };
    const codes = quantizer.checkConfig(config).map(({ severity, code }) => `${severity} ${code}`);
    assert.deepEqual(codes, ['note no-effect'], device);
    assert.ok(fitsSchema(config), `the schema marks ${device}`);
  }
});

test('classes are read under their names in torch, in Keras and as Python prints them', async (t) => {
  const quantizer = await quantizerFor(t);
  const names = {
    Linear: ['nn.Linear', 'torch.nn.Linear', "<class 'torch.nn.modules.linear.Linear'>", 'Dense', 'dense', 'linear'],
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
      if (/^([Dd]ense|linear|Conv2D)$/.test(other)) continue;
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

test('names of algorithms are read in upper case, too, and the dialect follows from the specs', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const key of ['algo_config', 'pre_quant_opt_config'])
    for (const name of ['GPTQ', 'AWQ', 'SmoothQuant', 'Rotation'])
      for (const list of [true, false]) {
        const entry = {
          name,
          ...(name === 'Rotation' && { scaling_layers: { first_layer: [], middle_layers: [], last_layer: [] } }),
        };
        const written = (spelt) => quark({}, { [key]: list ? [{ ...entry, name: spelt }] : { ...entry, name: spelt } });
        const found = quantizer.checkConfig(written(name));
        assert.deepEqual(found, quantizer.checkConfig(written(name.toLowerCase())), name);
      }
  assert.equal(quantizer.parseConfig(quark({}, { algo_config: [{ name: 'GPTQ' }] })).dialect, 'quark');
});

test('null in a spec of a layer defers to the global spec', async (t) => {
  const quantizer = await quantizerFor(t);
  const given = { symmetric: false, round_method: 'floor', scale_type: 'float16' };
  const whole = { dtype: 'uint4', qscheme: 'per_group', group_size: 32, ch_axis: -1, ...given };
  const layer = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };
  const config = (spec, rest) => ({
    global_quant_config: { weight: whole, bias: null },
    layer_quant_config: { '*q_proj': { weight: spec } },
    layer_type_quant_config: { Embedding: { weight: spec } },
    ...rest,
  });
  const model = await modelFor(t, quantizer, tinyLlama);
  const parsed = async (...args) =>
    (await quantizer.plan(model, config(...args), { format: 'fake-quantized' })).tensors.map(({ name, spec }) => [
      name,
      spec,
    ]);
  const nulls = Object.fromEntries(Object.keys(given).map((key) => [key, null]));
  assert.deepEqual(await parsed({ ...layer, ...nulls }), await parsed({ ...layer, ...given }));
  for (const key of Object.keys(given))
    assert.deepEqual(await parsed({ ...layer, [key]: null }), await parsed({ ...layer, [key]: given[key] }), key);
  const replaced = { resolution: 'replace' };
  assert.deepEqual(
    await parsed({ ...layer, ...nulls }, replaced),
    await parsed(layer, replaced),
    'replace does not defer',
  );
  const float = { dtype: 'fp8_e4m3', qscheme: 'per_tensor' };
  assert.deepEqual(await parsed({ ...float, ...nulls }), await parsed(float), 'floats have nothing to choose');
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
