// Weights of model files get the numbers that single tensors get: observers, grids of other dialects, lists of specs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const shape = [96, 320];
const values = noise(96 * 320, 11).map((v) => v ** 3 * 0.2);
const source = safetensors({ 'model.layers.0.mlp.up_proj.weight': { dtype: 'F32', shape, data: values } });

const weight = (spec) => ({ global_quant_config: { weight: spec } });
const aihwkit = (quant) => ({ module_qconfig_map: { Linear: { module_qconfig: { weight_quant: quant } } } });
const brevitas = (quant, version = '0.12.1') => ({
  dialect: 'brevitas',
  brevitas_version: version,
  global_quant_config: { weight: quant },
  pre_quant_opt_config: [],
});
const configs = {
  'MSE, one scale': weight({ dtype: 'int8', observer_cls: 'PerTensorMSEObserver' }),
  percentile: weight({
    dtype: 'int8',
    observer_cls: 'PerTensorPercentileObserver',
    observer_options: { percentile: 99 },
  }),
  'least squares': weight({ dtype: 'uint8', symmetric: false, observer_cls: 'PerTensorHistogramObserverPro' }),
  'powers of two': weight({ dtype: 'int8', observer_cls: 'PerChannelPowOf2MinMSEObserver', ch_axis: 0 }),
  'aihwkit, tails cut off': aihwkit({
    n_bits: 4,
    per_channel: true,
    range_estimator: 'current_minmax',
    range_estimator_params: { percentile: 2 },
  }),
  'aihwkit, search': aihwkit({
    n_bits: 4,
    symmetric: false,
    range_estimator: 'MSE',
    range_estimator_params: { range_opt_method: 'grid', num_candidates: 30, range_margin: 0.01 },
  }),
  'brevitas, per channel': brevitas({ bit_width: 4, qscheme: 'per_channel' }),
  'brevitas, power of two': brevitas({ bit_width: 8, scale_type: 'pof2' }, '0.10.3'),
  'brevitas, MSE': brevitas({ bit_width: 3, qscheme: 'per_channel', param_type: 'mse' }),
  'brevitas, float': brevitas({ quant_type: 'float_quant', exponent_bit_width: 4, mantissa_bit_width: 3 }),
};

for (const [name, config] of Object.entries(configs)) {
  test(`${name}: simulated values of a file equal those of the tensor`, async (t) => {
    const quantizer = await quantizerFor(t, { threads: 1 });
    const model = await modelFor(t, quantizer, source);
    const [tensor] = (await quantizer.plan(model, config, { format: 'fake-quantized' })).tensors;
    assert.equal(tensor.action, 'quantize', tensor.reason.text);
    const out = memoryStream();
    const report = await quantizer.quantizeModel(model, config, { target: out.stream, format: 'fake-quantized' });
    const stored = parsed(out.bytes()).data(tensor.name);
    const expected = quantizer.fakeQuantize({ data: values, shape }, tensor.spec);
    assert.deepEqual(new Float32Array(stored.buffer), expected);
    assert.ok(report.tensors[0].error.sqnrDb > 3, `${report.tensors[0].error.sqnrDb} dB`);
  });
}

test('a list of two specs: the plan names both, the file holds both scales', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, source);
  const stages = [
    { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
    { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0 },
  ];
  const [tensor] = (await quantizer.plan(model, weight(stages), { format: 'quark' })).tensors;
  assert.deepEqual(
    tensor.stages.map(({ dtype }) => dtype),
    ['fp8_e4m3', 'int4'],
  );
  assert.equal(tensor.spec.dtype, 'int4');
  const out = memoryStream();
  await quantizer.quantizeModel(model, weight(stages), { target: out.stream, format: 'quark' });
  const { header, data } = parsed(out.bytes());
  const layer = tensor.layer;
  assert.deepEqual(header[`${layer}.weight_scale`].shape, []);
  assert.deepEqual(header[`${layer}.weight_scale_2`].shape, [96]);
  const single = quantizer.quantize({ data: values, shape }, stages);
  const scales = new Float32Array(data(`${layer}.weight_scale_2`).buffer);
  assert.deepEqual(scales, single.scale);
  await assert.rejects(() => quantizer.plan(model, weight(stages)), {
    code: 'format-unsupported',
    message: /two stages/,
  });
});
