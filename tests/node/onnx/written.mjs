import { memoryStream, modelFor } from '../scratch.mjs';

export const named = (tensors, name) => tensors.find((tensor) => tensor.name === name);

export const namesOf = ({ tensors }) => tensors.map(({ name }) => name);

export async function written(t, quantizer, source, config, options = {}) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, ...options });
  return { bytes: out.bytes(), report };
}

export const floats = (bytes, { begin, end }) => new Float32Array(bytes.slice(begin, end).buffer);

/** The model's tensors in any order: [name, dtype, shape, bytes in hexadecimal]. */
export async function contents(t, quantizer, bytes) {
  const { tensors } = await modelFor(t, quantizer, bytes);
  const rows = tensors.map(({ name, dtype, shape, begin, end }) => [
    name,
    dtype,
    shape,
    Buffer.from(bytes.subarray(begin, end)).toString('hex'),
  ]);
  return rows.sort(([left], [right]) => (left < right ? -1 : 1));
}
