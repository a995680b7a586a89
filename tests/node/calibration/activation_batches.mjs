// A model of two linear layers, activations of it, and what calibrated runs make of both.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { writeFloats } from '../../interop/safetensors_file.mjs';
import { files, memoryStream, scratchFolder } from '../scratch.mjs';

export const reference = join(files, 'tiny-llama-reference');

export const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };

export const tensorOf = (dtype, rest = {}) => ({
  dtype,
  qscheme: 'per_tensor',
  is_dynamic: false,
  symmetric: true,
  ...rest,
});

export const configOf = (config) => ({ global_quant_config: { weight, ...config }, exclude: ['lm_head'] });

export const layers = ['up_proj', 'down_proj'];

export function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export const floats = (count, seed, scale = 1) => {
  const next = random(seed);
  return Float32Array.from({ length: count }, () => (next() - 0.4) * scale * (1 + 8 * next() ** 6));
};

/** A model of two linear layers: up [24, 16] and down [16, 24]. */
export function smallModel(t) {
  const folder = scratchFolder(t);
  const path = join(folder, 'model.safetensors');
  writeFloats(
    path,
    new Map([
      ['mlp.up_proj.weight', { shape: [24, 16], data: floats(24 * 16, 1) }],
      ['mlp.down_proj.weight', { shape: [16, 24], data: floats(16 * 24, 2) }],
      ['norm.weight', { shape: [16], data: new Float32Array(16).fill(1) }],
    ]),
  );
  return path;
}

export const features = { up_proj: { input: 16, output: 24 }, down_proj: { input: 24, output: 16 } };

export const rows = 40;

/** What went in and came out, as one tensor each. */
export const whole = layers.flatMap((layer, i) =>
  ['input', 'output'].map((role, j) => {
    const columns = features[layer][role];
    return { layer: `mlp.${layer}`, role, data: floats(rows * columns, 10 + 2 * i + j, 3 + i), shape: [rows, columns] };
  }),
);

/** The same in batches of so many rows. */
export const split = (batches, step) =>
  batches.flatMap(({ data, shape: [count, columns], ...rest }) =>
    Array.from({ length: Math.ceil(count / step) }, (_, i) => {
      const part = data.subarray(i * step * columns, (i + 1) * step * columns);
      return { ...rest, data: part, shape: [1, part.length / columns, columns] };
    }),
  );

export const tensors = (bytes) => {
  const start = 8 + Number(Buffer.from(bytes).readBigUInt64LE());
  const header = JSON.parse(Buffer.from(bytes).toString('utf8', 8, start));
  return (name) => {
    assert.ok(header[name], `${name} is missing; there are ${Object.keys(header).join(', ')}`);
    const { dtype, shape, data_offsets } = header[name];
    const data = Uint8Array.from(bytes.subarray(start + data_offsets[0], start + data_offsets[1]));
    const views = { F32: Float32Array, BF16: Uint16Array, I8: Int8Array, U8: Uint8Array };
    assert.equal(data_offsets[0] % data.BYTES_PER_ELEMENT, 0);
    return { dtype, shape, data: new views[dtype](data.buffer), offset: start + data_offsets[0] };
  };
};

export async function quantized(quantizer, model, config, calibration, format = 'compressed-tensors') {
  const { stream, bytes } = memoryStream();
  const report = await quantizer.quantizeModel(model, config, { target: stream, format, calibration });
  return { report, bytes: bytes(), tensor: tensors(bytes()) };
}
