// Files of compressed-tensors, decoded here by the format's description: rows that end inside a word, and NVFP4's scale of the whole tensor. The
// values are those of the fake-quantized output.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const layer = 'model.layers.0.mlp.up_proj';

/** The file of a matrix of noise in each of two formats. */
async function written(t, shape, config) {
  const folder = scratchFolder(t);
  const weights = { [`${layer}.weight`]: { dtype: 'F32', shape, data: noise(shape[0] * shape[1], 11) } };
  writeFileSync(join(folder, 'model.safetensors'), safetensors(weights));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: 'llama' }));
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folder);
  const files = [];
  for (const format of ['compressed-tensors', 'fake-quantized']) {
    await quantizer.quantizeModel(model, config, { target: join(folder, format), format });
    files.push(parsed(readFileSync(join(folder, format, 'model.safetensors'))));
  }
  return files;
}

const floats = (bytes) => new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const words = (bytes) => new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));

/** Code `at` of a stream of words, the first bits of each code in the lowest bits that are free. */
const codeAt = (stream, at, bits) => (stream[Math.floor((at * bits) / 32)] >>> ((at * bits) % 32)) & (2 ** bits - 1);

for (const [bits, dtype] of [
  [4, 'int4'],
  [4, 'uint4'],
  [2, 'int2'],
])
  for (const columns of [8, 37, 64])
    test(`${dtype}, rows of ${columns}: whole words for each row, codes plus ${2 ** (bits - 1)}`, async (t) => {
      const rows = 5;
      const symmetric = dtype.startsWith('int');
      const config = { global_quant_config: { weight: { dtype, qscheme: 'per_channel', ch_axis: 0, symmetric } } };
      const [packed, fake] = await written(t, [rows, columns], config);
      const width = Math.ceil((columns * bits) / 32);
      assert.deepEqual(packed.header[`${layer}.weight_packed`].shape, [rows, width]);
      const stream = words(packed.data(`${layer}.weight_packed`));
      const scale = floats(packed.data(`${layer}.weight_scale`));
      const zeros = symmetric ? null : words(packed.data(`${layer}.weight_zero_point`));
      const expected = floats(fake.data(`${layer}.weight`));
      for (let row = 0; row < rows; ++row)
        for (let column = 0; column < columns; ++column) {
          const code = codeAt(stream.subarray(row * width), column, bits);
          const zero = zeros ? codeAt(zeros, row, bits) : 2 ** (bits - 1);
          const value = (code - zero) * scale[row];
          const wanted = expected[row * columns + column];
          assert.ok(
            Math.abs(value - wanted) < 1e-6,
            `row ${row}, column ${column}: ${value}, ${wanted} in fake-quantized`,
          );
        }
    });

/** Values of the eight magnitudes of e2m1, and of e4m3 (no infinity). */
const ofE2m1 = (code) => (code & 8 ? -1 : 1) * [0, 0.5, 1, 1.5, 2, 3, 4, 6][code & 7];
function ofE4m3(byte) {
  const [exponent, mantissa] = [(byte >> 3) & 15, byte & 7];
  return exponent === 0 ? (mantissa / 8) * 2 ** -6 : (1 + mantissa / 8) * 2 ** (exponent - 7);
}

test('nvfp4: values are codes times scales divided by the scale of the whole tensor', async (t) => {
  const [rows, columns] = [6, 48];
  const [packed, fake] = await written(t, [rows, columns], 'nvfp4');
  const codes = packed.data(`${layer}.weight_packed`);
  const scale = packed.data(`${layer}.weight_scale`);
  const [whole] = floats(packed.data(`${layer}.weight_global_scale`));
  const expected = floats(fake.data(`${layer}.weight`));
  expected.forEach((wanted, at) => {
    const code = (codes[at >> 1] >> (4 * (at % 2))) & 15;
    const value = (ofE2m1(code) * ofE4m3(scale[Math.floor(at / 16)])) / whole;
    assert.ok(Math.abs(value - wanted) < 1e-6, `element ${at}: ${value}, ${wanted} in fake-quantized`);
  });
});
