// What the quark format holds beyond codes: dtypes of scales, routers of experts, and exports whose weights are values.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const perChannel = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const configOf = (weight, more = {}) => ({ global_quant_config: { weight }, ...more });
const matrix = (rows, columns, seed) => ({ dtype: 'F32', shape: [rows, columns], data: noise(rows * columns, seed) });
const narrowed = ({ shape, data }) => ({
  dtype: 'BF16',
  shape,
  data: Uint16Array.from(new Uint32Array(data.slice().buffer), (bits) => (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16),
});

function folderWith(t, tensors, config = { model_type: 'llama' }) {
  const folder = join(scratchFolder(t), 'model');
  mkdirSync(folder);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  return folder;
}

/** Quantizes a folder; {report, header, config} of what was written. */
async function quantized(t, folder, config, format = 'quark') {
  const quantizer = await quantizerFor(t);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(await modelFor(t, quantizer, folder), config, { target, format });
  const file = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
  return { report, target, ...file, config: JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')) };
}

test('scales of bfloat16 weights are bfloat16, as Quark exports them, except for per-tensor integers and requested float32', async (t) => {
  const folder = folderWith(t, { 'a.weight': narrowed(matrix(16, 64, 1)) });
  const scaleOf = async (weight) => (await quantized(t, folder, configOf(weight))).header['a.weight_scale'].dtype;
  assert.equal(await scaleOf(perChannel), 'BF16');
  assert.equal(await scaleOf({ dtype: 'fp8_e4m3' }), 'BF16');
  assert.equal(await scaleOf({ dtype: 'int8', symmetric: true }), 'F32');
  assert.equal(await scaleOf({ ...perChannel, scale_type: 'float32' }), 'F32');
  assert.equal(await scaleOf({ ...perChannel, grid: { arithmetic: 'float32' } }), 'F32');
  const { config } = await quantized(t, folder, configOf(perChannel));
  const { global_quant_config: global, layer_quant_config: layers } = config.quantization_config;
  assert.equal(global.weight.scale_type, 'float');
  assert.equal('grid' in global.weight, false);
  assert.deepEqual(layers, {}, 'no layer has an entry of its own');
});

test("bfloat16 weights read back with the plan's values", async (t) => {
  const folder = folderWith(t, { 'a.weight': narrowed(matrix(16, 64, 2)) });
  const uint4 = { dtype: 'uint4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: false };
  for (const weight of [perChannel, uint4, { dtype: 'fp8_e4m3', qscheme: 'per_channel', ch_axis: 0 }]) {
    const packed = await quantized(t, folder, configOf(weight));
    const simulated = await quantized(
      t,
      folder,
      configOf({ ...weight, grid: { arithmetic: 'weight' } }),
      'fake-quantized',
    );
    const quantizer = await quantizerFor(t);
    const [ours, reference] = [
      await modelFor(t, quantizer, packed.target),
      await modelFor(t, quantizer, simulated.target),
    ];
    const { tensors } = await quantizer.compare(reference, ours);
    assert.equal(tensors.length, 1);
    // The simulated values were rounded to bfloat16 once more.
    assert.ok(tensors[0].error.maxAbs <= 2 ** -8, `${weight.dtype}: ${tensors[0].error.maxAbs}`);
    assert.ok(tensors[0].error.sqnrDb > 45, `${weight.dtype}: ${tensors[0].error.sqnrDb}`);
  }
});

const router = 'model.layers.0.mlp.gate';
const mixture = () => ({
  [`${router}.weight`]: matrix(8, 64, 3),
  'model.layers.0.mlp.experts.0.gate_proj.weight': matrix(32, 64, 4),
  'model.layers.0.mlp.shared_expert_gate.weight': matrix(8, 64, 5),
});

test('routers are not quantized in files for loaders unless layer_quant_config names them', async (t) => {
  const folder = folderWith(t, mixture(), { model_type: 'qwen3_moe' });
  const { header, report, config } = await quantized(t, folder, configOf(perChannel));
  assert.equal(header[`${router}.weight`].dtype, 'F32');
  assert.equal(header['model.layers.0.mlp.experts.0.gate_proj.weight'].dtype, 'I8');
  assert.equal(header['model.layers.0.mlp.shared_expert_gate.weight'].dtype, 'I8');
  assert.ok(report.diagnostics.some(({ code, where }) => code === 'routers-left' && where === `${router}.weight`));
  assert.ok(config.quantization_config.exclude.includes(router));
  const named = configOf(perChannel, { layer_quant_config: { '*.gate': { weight: perChannel } } });
  for (const format of ['quark', 'compressed-tensors']) {
    const left = await quantized(t, folder, configOf(perChannel), format);
    assert.equal(left.header[`${router}.weight`].dtype, 'F32', format);
    const asked = await quantized(t, folder, named, format);
    assert.notEqual(asked.header[`${router}.weight`]?.dtype, 'F32', format);
    const limits = asked.report.diagnostics.filter(({ code }) => code === 'loader-limit');
    assert.ok(
      limits.some(({ message }) => /quantized routers of experts/.test(message)),
      format,
    );
  }
  const plain = await quantized(t, folder, configOf({ ...perChannel, symmetric: false }), 'fake-quantized');
  assert.ok(
    plain.report.tensors.find(({ name }) => name === `${router}.weight`).spec,
    'a format without codes keeps none',
  );
});

test('a gate without experts is an ordinary layer', async (t) => {
  const folder = folderWith(t, { 'model.layers.0.attn.gate.weight': matrix(16, 64, 6) });
  assert.equal(
    (await quantized(t, folder, configOf(perChannel))).header['model.layers.0.attn.gate.weight'].dtype,
    'I8',
  );
});

test('an export of Quark with weight_format fake_quantized is read: its weights are values', async (t) => {
  const tensors = { 'a.weight': matrix(16, 64, 7), 'norm.weight': { dtype: 'F32', shape: [64], data: noise(64, 8) } };
  const block = {
    quant_method: 'quark',
    ...configOf({
      dtype: 'int8',
      qscheme: 'per_tensor',
      symmetric: true,
      is_dynamic: false,
      observer_cls: 'PerTensorMinMaxObserver',
    }),
    export: { weight_format: 'fake_quantized', pack_method: 'reorder' },
  };
  const scales = { 'a.weight_scale': { dtype: 'F32', shape: [], data: Float32Array.of(0.01) } };
  const exported = folderWith(t, { ...tensors, ...scales }, { model_type: 'llama', quantization_config: block });
  const plain = folderWith(t, tensors);
  const quantizer = await quantizerFor(t);
  const report = await quantizer.compare(await modelFor(t, quantizer, plain), await modelFor(t, quantizer, exported));
  const errors = report.tensors.map(({ name, error }) => [name, error.maxAbs]);
  assert.deepEqual(Object.fromEntries(errors), { 'a.weight': 0, 'norm.weight': 0 });
  const [again, expected] = [
    await quantized(t, exported, configOf(perChannel)),
    await quantized(t, plain, configOf(perChannel)),
  ];
  assert.deepEqual(again.data('a.weight'), expected.data('a.weight'));
  assert.deepEqual(again.data('a.weight_scale'), expected.data('a.weight_scale'));
});

test('integers of 9 to 15 bits: Brevitas and aihwkit name them, fake-quantized holds them', async (t) => {
  const data = noise(1024, 9);
  const folder = folderWith(t, { 'a.weight': { dtype: 'F32', shape: [16, 64], data } });
  const largest = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  for (const bits of [9, 12, 15]) {
    const brevitas = {
      dialect: 'brevitas',
      pre_quant_opt_config: [],
      global_quant_config: { weight: { bit_width: bits } },
    };
    const aihwkit = {
      dialect: 'aihwkit',
      module_qconfig_map: {
        Linear: { quantized_module: 'QuantLinear', module_qconfig: { weight_quant: { n_bits: bits } } },
      },
    };
    for (const config of [brevitas, aihwkit]) {
      const { data: of } = await quantized(t, folder, config, 'fake-quantized');
      const values = new Float32Array(of('a.weight').slice().buffer);
      const step = largest / (2 ** (bits - 1) - 1);
      const worst = values.reduce((most, value, i) => Math.max(most, Math.abs(value - data[i])), 0);
      assert.ok(worst <= step * 0.51 && worst > step * 0.4, `${config.dialect}, ${bits} bits: ${worst / step} steps`);
    }
  }
});

test('sync_moe_expert_input_amax: the inputs of a projection have the largest scale of its experts', async (t) => {
  const layer = (expert, part) => `model.layers.0.mlp.experts.${expert}.${part}`;
  const layers = [0, 1].flatMap((expert) => ['gate_proj', 'up_proj'].map((part) => layer(expert, part)));
  const folder = folderWith(t, Object.fromEntries(layers.map((name, i) => [`${name}.weight`, matrix(16, 64, i + 1)])));
  const activations = join(scratchFolder(t), 'activations.safetensors');
  const batch = (i) => ({ dtype: 'F32', shape: [4, 64], data: noise(256, i + 20).map((value) => value * (i + 1)) });
  writeFileSync(activations, safetensors(Object.fromEntries(layers.map((name, i) => [`${name}.input`, batch(i)]))));
  const scalesOf = async (more, input) => {
    const quantizer = await quantizerFor(t);
    const target = join(scratchFolder(t), 'out');
    const config = { global_quant_config: { weight: perChannel, input_tensors: input }, ...more };
    const model = await modelFor(t, quantizer, folder);
    await quantizer.quantizeModel(model, config, { target, format: 'quark', calibration: activations });
    const { data } = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
    return layers.map((name) => new Float32Array(data(`${name}.input_scale`).slice().buffer)[0]);
  };
  const symmetric = { dtype: 'int8', symmetric: true };
  const [own, shared] = [
    await scalesOf({}, symmetric),
    await scalesOf({ sync_moe_expert_input_amax: true }, symmetric),
  ];
  const largest = [Math.max(own[0], own[2]), Math.max(own[1], own[3])];
  assert.deepEqual(shared, [...largest, ...largest]);
  assert.equal(new Set(own).size, 4);
  const asymmetric = { dtype: 'uint8', symmetric: false };
  assert.deepEqual(await scalesOf({ sync_moe_expert_input_amax: true }, asymmetric), await scalesOf({}, asymmetric));
});

test('specs of biases: values in fake-quantized files, a warning where a format keeps biases', async (t) => {
  const bias = { dtype: 'F32', shape: [16], data: noise(16, 40) };
  const tensors = { 'a.weight': matrix(16, 64, 41), 'a.bias': bias, 'b.weight': matrix(16, 64, 42), 'b.bias': bias };
  const folder = folderWith(t, tensors);
  const config = {
    global_quant_config: { weight: perChannel, bias: { dtype: 'int8', symmetric: true } },
    exclude: ['b'],
  };
  const { data, report } = await quantized(t, folder, config, 'fake-quantized');
  const scale = Math.fround(bias.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127.5);
  const inverse = Math.fround(1 / scale);
  const even = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
  const code = (value) => Math.max(-128, Math.min(127, even(Math.fround(value * inverse))));
  const expected = bias.data.map((value) => Math.fround(code(value) * scale));
  assert.deepEqual(
    new Float32Array(data('a.bias').slice().buffer).map((v) => v + 0),
    expected.map((v) => v + 0),
  );
  assert.deepEqual(new Float32Array(data('b.bias').slice().buffer), bias.data, 'an excluded layer keeps its bias');
  assert.equal(
    report.diagnostics.some(({ code }) => code === 'not-applied'),
    false,
  );
  const packed = await quantized(t, folder, config);
  assert.deepEqual(new Float32Array(packed.data('a.bias').slice().buffer), bias.data);
  assert.ok(packed.report.diagnostics.some(({ code, where }) => code === 'not-applied' && where === 'a.bias'));
});

test('the bias of a matrix stored as [inputs, outputs] has one axis with every spec', async (t) => {
  const bias = { dtype: 'F32', shape: [48], data: noise(48, 44) };
  const tensors = { 'h.0.attn.c_attn.weight': matrix(16, 48, 43), 'h.0.attn.c_attn.bias': bias };
  const folder = folderWith(t, tensors, { model_type: 'gpt2' });
  const group = { dtype: 'int8', qscheme: 'per_group', ch_axis: -1, group_size: 16, symmetric: true };
  for (const spec of [{ dtype: 'int8', symmetric: true }, { dtype: 'uint8', symmetric: false }, perChannel, group]) {
    const { data } = await quantized(
      t,
      folder,
      configOf(perChannel, { layer_quant_config: { '*c_attn': { bias: spec } } }),
      'fake-quantized',
    );
    const values = new Float32Array(data('h.0.attn.c_attn.bias').slice().buffer);
    assert.notDeepEqual(values, bias.data, spec.qscheme);
    const largest = Math.max(...bias.data.map(Math.abs));
    const errors = values.map((value, i) => Math.abs(value - bias.data[i]));
    assert.ok(Math.max(...errors) <= largest / 127, `${JSON.stringify(spec)}: ${errors}`);
  }
});

test('a block names only observers that Quark can construct from it', async (t) => {
  const folder = folderWith(t, { 'a.weight': matrix(16, 64, 45) });
  const observerOf = async (observer_cls) => {
    const { config } = await quantized(t, folder, configOf({ dtype: 'int8', symmetric: true, observer_cls }));
    return config.quantization_config.global_quant_config.weight.observer_cls;
  };
  assert.equal(
    await observerOf('TQTObserver'),
    'PerTensorMinMaxObserver',
    'Quark asserts a qat_spec, which its JSON lacks',
  );
  assert.equal(await observerOf('LSQObserver'), 'LSQObserver');
});

test('an export of Quark whose biases are codes is refused, not copied', async (t) => {
  const block = { quant_method: 'quark', ...configOf(perChannel), export: { weight_format: 'real_quantized' } };
  block.global_quant_config.bias = { dtype: 'int8', symmetric: true };
  const tensors = {
    'a.weight': { dtype: 'I8', shape: [16, 64], data: new Int8Array(1024) },
    'a.weight_scale': { dtype: 'F32', shape: [16], data: new Float32Array(16).fill(1) },
    'a.bias': { dtype: 'I8', shape: [16], data: new Int8Array(16) },
    'a.bias_scale': { dtype: 'F32', shape: [], data: Float32Array.of(1) },
  };
  const folder = folderWith(t, tensors, { model_type: 'llama', quantization_config: block });
  await assert.rejects(quantized(t, folder, configOf(perChannel)), /has quantized biases, which cannot be read/);
});
