// Weights stored as floats of 8 and 4 bits: plain ones are values; beside a scale they are codes, whoever names it how.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

/** By the definition of the OCP formats. */
function floatOf(code, exponentBits, mantissaBits, bias) {
  const exponent = (code >> mantissaBits) & ((1 << exponentBits) - 1);
  const fraction = (code & ((1 << mantissaBits) - 1)) / 2 ** mantissaBits;
  const sign = (code >> (exponentBits + mantissaBits)) & 1 ? -1 : 1;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias));
}
const e4m3 = (code) => floatOf(code, 4, 3, 7);
const e5m2 = (code) => floatOf(code, 5, 2, 15);
const fp4 = (code) => floatOf(code, 2, 1, 1);

/** Every finite code of E4M3, over and over. */
const finite = Uint8Array.from({ length: 256 }, (_, code) => code).filter((code) => (code & 0x7f) !== 0x7f);
const codes = (count) => Uint8Array.from({ length: count }, (_, i) => finite[(i * 37) % finite.length]);

const cast = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };

/** The weights of a model, written as BF16 (or by `options`) and read without the library. */
async function written(t, source, config = cast, options = { format: 'fake-quantized' }) {
  const quantizer = await quantizerFor(t);
  const target = join(scratchFolder(t), 'out');
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, config, { target, ...options });
  const { header, data } = parsed(new Uint8Array(readFileSync(join(target, report.files[0].name))));
  const floats = (name) => {
    const bytes = data(name);
    if (header[name].dtype === 'F32') return new Float32Array(bytes.slice().buffer);
    assert.equal(header[name].dtype, 'BF16');
    return Float32Array.from(new Uint16Array(bytes.slice().buffer), (bits) => {
      const view = new DataView(new ArrayBuffer(4));
      view.setUint32(0, bits * 65536);
      return view.getFloat32(0);
    });
  };
  return { report, header, floats };
}
const bfloat16 = (value) => {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  const bits = view.getUint32(0);
  view.setUint32(0, ((bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000) >>> 0);
  return view.getFloat32(0);
};

test('plain E4M3, E5M2 and F4 weights are read as values', async (t) => {
  const packed = Uint8Array.from({ length: 16 * 16 }, (_, i) => (i * 29) & 255);
  const halves = codes(32 * 32).map((code) => ((code & 0x7f) % 0x7c) | (code & 0x80));
  const { report, floats } = await written(
    t,
    safetensors({
      'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data: codes(32 * 32) },
      'b.weight': { dtype: 'F8_E5M2', shape: [32, 32], data: halves },
      'c.weight': { dtype: 'F4', shape: [16, 32], data: packed },
    }),
  );
  assert.deepEqual(floats('a.weight'), Float32Array.from(codes(32 * 32), e4m3));
  assert.deepEqual(floats('b.weight'), Float32Array.from(halves, e5m2));
  assert.deepEqual(
    floats('c.weight').map((v) => v + 0),
    Float32Array.from({ length: 512 }, (_, i) => fp4((packed[i >> 1] >> (4 * (i & 1))) & 15) + 0),
  );
  for (const { error } of report.tensors) assert.equal(error.mse, 0);
});

test('their scales are multiplied in: by tensor, channel, group and block, under every name', async (t) => {
  const scales = noise(64, 5).map((v, i) => (i % 3 === 0 ? -1 : 1) * (Math.abs(v) + 0.01));
  const block = (rows, columns) => (row, column) =>
    Math.floor(row / rows) * Math.ceil(160 / columns) + Math.floor(column / columns);
  const cases = {
    scalar: ['weight_scale', [], () => 0],
    tensor: ['scale_weight', [1], () => 0],
    channel: ['weight_scale', [48, 1], (row) => row],
    flat: ['weight_scale', [48], (row) => row],
    blocks: ['weight_scale_inv', [1, 2], block(128, 128)],
    half: ['weight_scale_inv', [1, 3], block(64, 64)],
  };
  const tensors = {};
  for (const [name, [suffix, shape]] of Object.entries(cases)) {
    tensors[`${name}.weight`] = { dtype: 'F8_E4M3', shape: [48, 160], data: codes(48 * 160) };
    const count = shape.reduce((n, d) => n * d, 1);
    tensors[`${name}.${suffix}`] = { dtype: 'F32', shape, data: scales.slice(0, count) };
  }
  tensors['mx.weight'] = { dtype: 'F4', shape: [8, 64], data: codes(8 * 32) };
  tensors['mx.weight_scale'] = {
    dtype: 'F8_E8M0',
    shape: [8, 2],
    data: Uint8Array.from({ length: 16 }, (_, i) => 120 + i),
  };
  const { report, header, floats } = await written(t, safetensors(tensors));
  assert.deepEqual(
    Object.keys(header)
      .filter((name) => !name.startsWith('__'))
      .sort(),
    [...Object.keys(cases), 'mx'].map((name) => `${name}.weight`).sort(),
    'scales do not go over',
  );
  for (const [name, [, , scaleOf]] of Object.entries(cases)) {
    const expected = Float32Array.from(codes(48 * 160), (code, i) =>
      bfloat16(Math.fround(e4m3(code) * scales[scaleOf(Math.floor(i / 160), i % 160)])),
    );
    assert.deepEqual(floats(`${name}.weight`), expected, name);
  }
  const packed = codes(8 * 32);
  assert.deepEqual(
    floats('mx.weight').map((v) => v + 0),
    Float32Array.from(
      { length: 512 },
      (_, i) => fp4((packed[i >> 1] >> (4 * (i & 1))) & 15) * 2 ** (Math.floor(i / 32) - 7) + 0,
    ),
  );
  assert.ok(report.diagnostics.some(({ code }) => code === 'requantized'));
});

test('quant_method fp8 of config.json, with blocks of its size', async (t) => {
  const folder = join(scratchFolder(t), 'model');
  mkdirSync(folder);
  const quantization = { quant_method: 'fp8', fmt: 'e4m3', weight_block_size: [16, 32], activation_scheme: 'dynamic' };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: 'x', quantization_config: quantization }));
  const scale = noise(6, 3).map((v) => Math.abs(v) + 0.01);
  writeFileSync(
    join(folder, 'model.safetensors'),
    safetensors({
      'a.proj.weight': { dtype: 'F8_E4M3', shape: [40, 64], data: codes(40 * 64) },
      'a.proj.weight_scale_inv': { dtype: 'F32', shape: [3, 2], data: scale },
      'a.norm.weight': { dtype: 'F32', shape: [8], data: noise(8) },
    }),
  );
  const { floats } = await written(t, folder);
  assert.deepEqual(
    floats('a.proj.weight'),
    Float32Array.from(codes(40 * 64), (code, i) =>
      bfloat16(Math.fround(e4m3(code) * scale[Math.floor(i / 64 / 16) * 2 + Math.floor((i % 64) / 32)])),
    ),
  );
  assert.deepEqual(floats('a.norm.weight'), noise(8));
});

test('new values of small floats are written as BF16, and the report says so', async (t) => {
  const int4 = { global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 32 } } };
  const source = safetensors({ 'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data: codes(32 * 32) } });
  const { report, header } = await written(t, source, int4);
  assert.equal(header['a.weight'].dtype, 'BF16');
  assert.ok(report.diagnostics.some(({ code }) => code === 'dtype-promoted'));
  const data = codes(32 * 32);
  const both = safetensors({
    'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data },
    'b.weight': { dtype: 'F32', shape: [32, 32], data: Float32Array.from(data, e4m3) },
  });
  const kept = await written(t, both, { ...int4, exclude: ['a'] });
  assert.equal(kept.header['a.weight'].dtype, 'F8_E4M3', 'what the config leaves out stays as it is');
  assert.ok(!kept.report.diagnostics.some(({ code }) => code === 'dtype-promoted'));
});

test('small floats are compared, too', async (t) => {
  const quantizer = await quantizerFor(t);
  const data = codes(32 * 32);
  const plain = await modelFor(t, quantizer, safetensors({ 'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data } }));
  const values = Float32Array.from(data, e4m3);
  const floats = await modelFor(
    t,
    quantizer,
    safetensors({ 'a.weight': { dtype: 'F32', shape: [32, 32], data: values } }),
  );
  const scaled = await modelFor(
    t,
    quantizer,
    safetensors({
      'a.weight': { dtype: 'F8_E4M3', shape: [32, 32], data },
      'a.weight_scale': { dtype: 'F32', shape: [1], data: Float32Array.of(2) },
    }),
  );
  const [same] = (await quantizer.compare(floats, plain)).tensors;
  assert.equal(same.error.mse, 0);
  const [doubled] = (await quantizer.compare(plain, scaled)).tensors;
  assert.equal(doubled.error.maxAbs, 448);
});

test('unknown scales are an error, not ignored', async (t) => {
  const quantizer = await quantizerFor(t);
  const weight = { dtype: 'F8_E4M3', shape: [32, 32], data: codes(32 * 32) };
  const refused = async (more, message) => {
    const model = await modelFor(t, quantizer, safetensors({ 'a.weight': weight, ...more }));
    const target = join(scratchFolder(t), 'out');
    await assert.rejects(quantizer.quantizeModel(model, cast, { target, format: 'fake-quantized' }), {
      code: 'dtype-unsupported',
      message,
    });
  };
  const scale = (dtype, shape, data) => ({ 'a.weight_scale': { dtype, shape, data } });
  await refused(scale('F32', [5, 7], noise(35)), /F32 \[5, 7\] is not a supported scale for F8_E4M3 \[32, 32\]/);
  await refused(scale('I32', [1], new Int32Array(1)), /I32 \[1\]/);
  await refused(
    { ...scale('F32', [1], noise(1)), 'a.weight_scale_2': { dtype: 'F32', shape: [1], data: noise(1) } },
    /it decodes /,
  );
});
