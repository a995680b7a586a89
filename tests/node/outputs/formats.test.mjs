// Every number format through the API: codes and values agree, block formats carry their exponents, model files come back.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const values = (count) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * 1.7) * (1 + (i % 7)) * 0.03);
const groups = (dtype, group_size, scale_format) => ({
  dtype,
  qscheme: 'per_group',
  ch_axis: -1,
  group_size,
  scale_format,
});

const specs = {
  ...Object.fromEntries(
    ['int2', 'int3', 'int4', 'int5', 'int6', 'int7', 'int8', 'int16', 'int32', 'fp8_e4m3', 'fp8_e5m2', 'fp4'].map(
      (dtype) => [dtype, { dtype, qscheme: 'per_channel', ch_axis: 0 }],
    ),
  ),
  fp8_e4m3fnuz: { dtype: 'fp8_e4m3fnuz' },
  fp8_e5m2fnuz: { dtype: 'fp8_e5m2fnuz' },
  'minifloat e3m4': { dtype: 'minifloat', exponent_bits: 3, mantissa_bits: 4 },
  'minifloat e5m10': { dtype: 'minifloat', exponent_bits: 5, mantissa_bits: 10 },
  'minifloat e7m10': { dtype: 'minifloat', exponent_bits: 7, mantissa_bits: 10 },
  'fp8 blocks': { dtype: 'fp8_e4m3', qscheme: 'per_block', block_size: [3, 20] },
  mxfp4: groups('fp4', 32, 'e8m0'),
  'mxfp6 along axis 0': { ...groups('fp6_e2m3', 4, 'e8m0'), ch_axis: 0 },
  mxint8: { dtype: 'mx', mx_element_dtype: 'int8', scale_calculation_mode: 'ceil' },
  nvfp4: groups('fp4', 16, 'e4m3'),
  amdfp4: groups('fp4', 16, 'e5m3'),
  'fp6 groups': groups('fp6_e3m2', 16, 'float32'),
  mx6: { dtype: 'mx6' },
  'mx9 along axis 0': { dtype: 'mx9', ch_axis: 0, group_size: 4 },
  bfp16: { dtype: 'bfp16' },
};

for (const [name, spec] of Object.entries(specs)) {
  test(`${name}: decoded codes equal fakeQuantize, ragged last groups too`, async (t) => {
    const quantizer = await quantizerFor(t);
    const tensor = { data: values(7 * 45), shape: [7, 45] };
    const quantized = quantizer.quantize(tensor, spec);
    const decoded = quantizer.dequantize(quantized);
    assert.equal(quantized.codes.length, 7 * 45);
    assert.deepEqual(
      decoded.map((v) => v + 0),
      quantizer.fakeQuantize(tensor, spec).map((v) => v + 0),
    );
    const worst = Math.max(...decoded.map((v, i) => Math.abs(v - tensor.data[i])));
    assert.ok(worst < 0.21 && decoded.some((v) => v !== 0), `largest error ${worst}`);
    assert.equal(
      quantized.scale.length,
      quantized.scaleShape.reduce((n, size) => n * size, 1),
    );
    assert.deepEqual(quantizer.quantize(tensor, quantized.spec).codes, quantized.codes);
  });
}

const fp8 = { dtype: 'fp8_e4m3', qscheme: 'per_tensor' };
for (const [name, stages] of Object.entries({
  'progressive, fp8 then int4 per channel': [fp8, { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0 }],
  'fp4 groups with fp8 scales': [groups('fp4', 16, 'float32'), { ...fp8, is_scale_quant: true }],
})) {
  test(`two stages, ${name}: codes, scales and values`, async (t) => {
    const quantizer = await quantizerFor(t);
    const tensor = { data: values(4 * 48), shape: [4, 48] };
    const quantized = quantizer.quantize(tensor, stages);
    assert.equal(quantized.spec.length, 2);
    assert.ok(quantized.secondScale > 0);
    const decoded = quantizer.dequantize(quantized);
    assert.deepEqual(decoded, quantizer.fakeQuantize(tensor, stages));
    const noise = decoded.reduce((sum, v, i) => sum + (v - tensor.data[i]) ** 2, 0);
    const signal = tensor.data.reduce((sum, v) => sum + v * v, 0);
    assert.ok(noise < signal / 50, `${noise} of ${signal}`);
  });
}

test('meaningless pairs of stages are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const tensor = { data: values(64), shape: [2, 32] };
  for (const stages of [[fp8], [fp8, fp8, fp8], [{ dtype: 'int8' }, fp8], [fp8, { dtype: 'mx9' }]])
    assert.throws(
      () => quantizer.quantize(tensor, stages),
      (error) => error.code === 'spec-invalid',
      JSON.stringify(stages),
    );
});

test('MX scales are powers of two, stored as exponents', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from({ length: 64 }, (_, i) => (i < 32 ? 6 : 7));
  const { scale, sharedExponents, codes, zeroPoint } = quantizer.quantize({ data, shape: [1, 64] }, specs.mxfp4);
  assert.deepEqual(scale, Float32Array.from([1, 2]));
  assert.deepEqual(sharedExponents, Uint8Array.from([127, 128]));
  assert.deepEqual([codes[0], codes[32]], [7, 6]); // 6 and 4 * 2
  assert.equal(zeroPoint, null);
});

test('NVFP4 has a second scale', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from({ length: 32 }, (_, i) => (i === 0 ? 2688 : 0));
  const { scale, secondScale } = quantizer.quantize({ data, shape: [1, 32] }, specs.nvfp4);
  assert.equal(secondScale, 1);
  assert.deepEqual(scale, Float32Array.from([448, 1]));
});

test('mx9: exponents and a shift for each pair; missing parts are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from({ length: 16 }, (_, i) => (i < 2 ? 1.5 : 0.25));
  const quantized = quantizer.quantize({ data, shape: [16] }, { dtype: 'mx9' });
  assert.deepEqual(quantized.sharedExponents, Uint8Array.from([127]));
  assert.deepEqual(quantized.pairShifts, Uint8Array.from([0, 1, 1, 1, 1, 1, 1, 1]));
  assert.deepEqual([quantized.codes[0], quantized.codes[2]], [96, 32]);
  assert.throws(() => quantizer.dequantize({ ...quantized, pairShifts: undefined }), /8 pairs/);
});

test('fields that a dtype does not use are ignored with a warning, as in Quark', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [weight, key] of [
    [{ dtype: 'fp4', symmetric: false }, 'symmetric'],
    [{ dtype: 'fp8_e4m3', zero_point_type: 'float32' }, 'zero_point_type'],
    [{ dtype: 'int8', scale_format: 'e8m0' }, 'scale_format'],
  ]) {
    const found = quantizer
      .checkConfig({ global_quant_config: { weight } })
      .filter(({ code }) => code === 'key-ignored');
    assert.deepEqual(
      found.map(({ severity, where }) => [severity, where]),
      [['warning', `/global_quant_config/weight/${key}`]],
    );
  }
});

test('impossible specs are diagnostics', async (t) => {
  const quantizer = await quantizerFor(t);
  const tensor = { data: values(64), shape: [2, 32] };
  for (const [spec, where] of [
    [{ dtype: 'uint16' }, '/dtype'],
    [{ dtype: 'mx' }, ''],
    [{ dtype: 'minifloat', exponent_bits: 8, mantissa_bits: 3 }, '/exponent_bits'],
    [{ dtype: 'bfp16', group_size: 9 }, '/group_size'],
  ])
    assert.throws(
      () => quantizer.quantize(tensor, spec),
      (error) => error.code === 'spec-invalid' && (error.where ?? '') === where,
      JSON.stringify(spec),
    );
  assert.throws(() => quantizer.quantize(tensor, { ...groups('int8', 5) }), /group_size 5 does not divide/);
});

for (const preset of ['mxfp4', 'mxfp6_e3m2', 'mxfp8', 'nvfp4', 'amdfp4', 'mx6', 'mx9', 'bfp16', 'fp8_per_block']) {
  test(`${preset}: a quark file holds the values that were reported`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = scratchFolder(t);
    const model = await quantizer.open('tests/files/tiny-llama');
    const report = await quantizer.quantizeModel(model, preset, { target: `${folder}/out`, format: 'quark' });
    const written = await quantizer.open(`${folder}/out`);
    const compared = await quantizer.compare(model, written);
    const errors = (tensors) =>
      new Map(tensors.filter(({ error }) => error).map(({ name, error }) => [name, error.mse]));
    const expected = errors(report.tensors);
    assert.ok(expected.size >= 28);
    const found = errors(compared.tensors);
    // The sums are float32 within blocks of 1024 elements, which the two cut differently.
    for (const [name, mse] of expected) assert.ok(Math.abs(found.get(name) - mse) <= 1e-6 * mse, name);
  });
}

for (const [preset, columns] of [
  ['mxfp4', 32],
  ['mxfp8', 32],
  ['nvfp4', 16],
  ['mxfp4', 96],
]) {
  test(`${preset}: a compressed-tensors file with rows of ${columns} reads back`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = scratchFolder(t);
    mkdirSync(`${folder}/in`);
    const weight = { dtype: 'F32', shape: [8, columns], data: noise(8 * columns) };
    writeFileSync(`${folder}/in/model.safetensors`, safetensors({ 'model.layers.0.mlp.up_proj.weight': weight }));
    writeFileSync(`${folder}/in/config.json`, '{"architectures": ["LlamaForCausalLM"]}');
    const model = await quantizer.open(`${folder}/in`);
    const report = await quantizer.quantizeModel(model, preset, {
      target: `${folder}/out`,
      format: 'compressed-tensors',
    });
    const compared = await quantizer.compare(model, await quantizer.open(`${folder}/out`));
    assert.equal(report.totals.quantized, 1);
    const [found, expected] = [compared.tensors[0].error, report.tensors[0].error];
    assert.ok(expected.sqnrDb > 15 && Math.abs(found.mse - expected.mse) <= 1e-6 * expected.mse);
  });
}
