// Tensors in and out of safetensors files, apart from the library under test: u64 header length, JSON, data.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const views = { F32: Float32Array, F16: Uint16Array, BF16: Uint16Array, U8: Uint8Array, F8_E4M3: Uint8Array };

/** Every float and byte tensor of the model files in a folder: Map of name to `{ dtype, shape, data }`, narrow values as bits. */
export function readModel(folder) {
  const tensors = new Map();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.safetensors'))) {
    const bytes = readFileSync(join(folder, file));
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
  }
  return tensors;
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
