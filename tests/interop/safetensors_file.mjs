// Tensors in and out of safetensors files, apart from the library under test: u64 header length, JSON, data.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const views = {
  F32: Float32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  U8: Uint8Array,
  F8_E4M3: Uint8Array,
  I32: Int32Array,
  I64: BigInt64Array,
};

/** Every float, byte and integer tensor of a file: Map of name to `{ dtype, shape, data }`, narrow floats as bits. */
export function readTensors(path) {
  const tensors = new Map();
  const bytes = readFileSync(path);
  const start = 8 + Number(bytes.readBigUInt64LE());
  const { __metadata__, ...header } = JSON.parse(bytes.toString('utf8', 8, start));
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [begin, end],
    },
  ] of Object.entries(header)) {
    if (!views[dtype]) continue;
    const copy = Uint8Array.prototype.slice.call(bytes, start + begin, start + end);
    tensors.set(name, { dtype, shape, data: new views[dtype](copy.buffer) });
  }
  return tensors;
}

/** The same of all model files in a folder. */
export function readModel(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
  return new Map(names.flatMap((name) => [...readTensors(join(folder, name))]));
}

/** Writes a Map of name to `{ shape, data: Float32Array }` as F32. */
export function writeFloats(path, tensors) {
  const header = {};
  let end = 0;
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  const json = JSON.stringify(header);
  const text = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8), 'latin1');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const values = [...tensors.values()].map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  writeFileSync(path, Buffer.concat([length, text, ...values]));
}
