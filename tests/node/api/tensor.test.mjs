// One tensor in memory, against numbers worked out by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';

const spec = (fields) => ({
  qscheme: 'per_tensor',
  symmetric: true,
  is_dynamic: false,
  round_method: 'half_even',
  scale_type: 'float',
  observer_cls: 'PerTensorMinMaxObserver',
  ...fields,
});
const perChannel = { qscheme: 'per_channel', ch_axis: 0, observer_cls: 'PerChannelMinMaxObserver' };
const perGroup = (group_size) => ({
  qscheme: 'per_group',
  ch_axis: -1,
  group_size,
  observer_cls: 'PerGroupMinMaxObserver',
});

test('int8 per tensor, symmetric: the largest magnitude maps to 127.5', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from([127.5, -3.2, 2.5, 3.5, -127.5, 0]);
  const quantized = quantizer.quantize({ data, shape: [2, 3] }, spec({ dtype: 'int8' }));
  assert.deepEqual(quantized.codes, Int8Array.from([127, -3, 2, 4, -128, 0]));
  assert.deepEqual(quantized.scale, Float32Array.from([1]));
  assert.deepEqual(quantized.scaleShape, []);
  assert.deepEqual(quantized.zeroPoint, Int32Array.from([0]));
  assert.deepEqual(quantized.shape, [2, 3]);
  assert.equal(quantized.spec.dtype, 'int8');
  assert.deepEqual(quantizer.dequantize(quantized), Float32Array.from([127, -3, 2, 4, -128, 0]));
});

test('round methods differ at ties', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from([127.5, 2.5, -2.5, 0.5, 1.7]);
  const codes = (round_method) => [
    ...quantizer.quantize({ data, shape: [5] }, spec({ dtype: 'int8', round_method })).codes,
  ];
  assert.deepEqual(codes('half_even'), [127, 2, -2, 0, 2]);
  assert.deepEqual(codes('round'), [127, 3, -2, 1, 2]);
  assert.deepEqual(codes('floor'), [127, 2, -3, 0, 1]);
});

test('uint8 per channel, asymmetric: zero points and one scale per row', async (t) => {
  const quantizer = await quantizerFor(t);
  // Row 0: range [0, 255], scale 1, zero point 0. Row 1: range [-51, 76.5], scale 0.5, zero point 102.
  const data = Float32Array.from([0, 1.4, 255, -51, 0.5, 76.5]);
  const quantized = quantizer.quantize(
    { data, shape: [2, 3] },
    spec({ dtype: 'uint8', symmetric: false, ...perChannel }),
  );
  assert.deepEqual(quantized.codes, Uint8Array.from([0, 1, 255, 0, 103, 255]));
  assert.deepEqual(quantized.scale, Float32Array.from([1, 0.5]));
  assert.deepEqual(quantized.zeroPoint, Int32Array.from([0, 102]));
  assert.deepEqual(quantized.scaleShape, [2]);
  assert.deepEqual(quantizer.dequantize(quantized), Float32Array.from([0, 1, 255, -51, 0.5, 76.5]));
});

test('int4 per group: groups of 2 along the last axis', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from([7.5, 1, 15, -2, 0.75, -0.1, 3.75, 3]);
  const quantized = quantizer.quantize({ data, shape: [2, 4] }, spec({ dtype: 'int4', ...perGroup(2) }));
  assert.deepEqual(quantized.scale, Float32Array.from([1, 2, 0.1, 0.5]));
  assert.deepEqual(quantized.scaleShape, [2, 2]);
  assert.deepEqual([...quantized.codes], [7, 1, 7, -1, 7, -1, 7, 6]);
});

test('fp8_e4m3: codes are the bits of the format', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from([448, 1, -2, 2 ** -9, 0]);
  const quantized = quantizer.quantize({ data, shape: [5] }, spec({ dtype: 'fp8_e4m3', symmetric: null }));
  assert.deepEqual(quantized.codes, Uint8Array.from([0x7e, 0x38, 0xc0, 0x01, 0x00]));
  assert.deepEqual(quantized.scale, Float32Array.from([1]));
  assert.equal(quantized.zeroPoint, null);
  assert.deepEqual(quantizer.dequantize(quantized), data);
});

test('bfloat16 and float16 input', async (t) => {
  const quantizer = await quantizerFor(t);
  // 127.5 and -1 as BF16 and F16 bits.
  const bf16 = Uint16Array.from([0x42ff, 0xbf80]);
  const f16 = Uint16Array.from([0x57f8, 0xbc00]);
  for (const [dtype, data] of [
    ['BF16', bf16],
    ['F16', f16],
  ]) {
    const { codes } = quantizer.quantize({ data, dtype, shape: [2] }, spec({ dtype: 'int8' }));
    assert.deepEqual([...codes], [127, -1], dtype);
  }
});

test('fakeQuantize equals dequantize(quantize) for symmetric specs, for many sizes', async (t) => {
  const quantizer = await quantizerFor(t);
  for (let count = 1; count <= 67; ++count) {
    const data = Float32Array.from({ length: count }, (_, i) => Math.sin(i * 1.7) * (i + 1));
    const tensor = { data, shape: [1, count] };
    const exact = quantizer.dequantize(quantizer.quantize(tensor, spec({ dtype: 'int8' })));
    assert.deepEqual(quantizer.fakeQuantize(tensor, spec({ dtype: 'int8' })), exact, `${count} elements`);
  }
});

test('results are copies: a later call does not change them', async (t) => {
  const quantizer = await quantizerFor(t);
  const first = quantizer.quantize({ data: Float32Array.from([127.5, 1]), shape: [2] }, spec({ dtype: 'int8' }));
  quantizer.quantize({ data: new Float32Array(4_000_000).fill(3), shape: [2000, 2000] }, spec({ dtype: 'int8' }));
  assert.deepEqual([...first.codes], [127, 1]);
});

test('wrong arguments are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const good = spec({ dtype: 'int8' });
  const data = new Float32Array(6);
  for (const [tensor, code, message] of [
    [{ data, shape: [2, 2] }, 'shape-mismatch', /\[2, 2\] has 4 elements, but data has 6/],
    [{ data, shape: [2, -3] }, 'argument-invalid', /shape/],
    [{ data, shape: 'six' }, 'argument-invalid', /shape/],
    [{ data: [1, 2], shape: [2] }, 'argument-invalid', /Float32Array/],
    [{ data: new Uint16Array(2), shape: [2] }, 'argument-invalid', /Float32Array/],
    [{ data, dtype: 'BF16', shape: [6] }, 'argument-invalid', /Uint16Array/],
    [{ data, dtype: 'I8', shape: [6] }, 'dtype-unsupported', /I8/],
    [undefined, 'argument-invalid', /tensor: is undefined/],
  ]) {
    assert.throws(() => quantizer.quantize(tensor, good), { name: 'QuantizationError', code, message });
  }
  assert.throws(() => quantizer.quantize({ data, shape: [6] }, null), { code: 'argument-invalid' });
  assert.throws(() => quantizer.quantize({ data, shape: [6] }, { dtype: 'int99' }), {
    code: 'spec-invalid',
    where: /dtype/,
  });
  const quantized = quantizer.quantize({ data, shape: [6] }, good);
  assert.throws(() => quantizer.dequantize({ ...quantized, scale: new Float32Array(2) }), { code: 'shape-mismatch' });
  assert.throws(() => quantizer.dequantize({ ...quantized, shape: [7] }), { code: 'shape-mismatch' });
});

test('NaN in a tensor is an error that names its index', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = Float32Array.from([1, 2, Number.NaN]);
  assert.throws(() => quantizer.quantize({ data, shape: [3] }, spec({ dtype: 'int8' })), {
    code: 'value-not-finite',
    message: /\b2\b/,
  });
});

test('empty tensors give empty results', async (t) => {
  const quantizer = await quantizerFor(t);
  const { codes } = quantizer.quantize({ data: new Float32Array(0), shape: [0, 4] }, spec({ dtype: 'int8' }));
  assert.equal(codes.length, 0);
});
