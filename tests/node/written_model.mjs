// Writes safetensors files for tests, without the code under test.

/** `tensors`: {name: {dtype, shape, data: typed array}}; bytes of a whole file. */
export function safetensors(tensors, metadata = undefined) {
  const header = metadata ? { __metadata__: metadata } : {};
  const parts = [];
  let offset = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + data.byteLength] };
    parts.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    offset += data.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return new Uint8Array(Buffer.concat([length, text, ...parts]));
}

/** Header and a function for the bytes of a tensor. */
export function parsed(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + 8, length).toString());
  const data = (name) => {
    const [begin, end] = header[name].data_offsets;
    return bytes.slice(8 + length + begin, 8 + length + end);
  };
  return { header, data };
}

/** Float32 values of a fixed pseudo-random sequence in [-1, 1), always the same for a seed. */
export function noise(count, seed = 1) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/** A GGUF file of one F32 matrix of 64 rows and columns. `keys`: of text. */
export function gguf(keys, name) {
  const size = 64;
  const text = (value) => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(value.length));
    return Buffer.concat([length, Buffer.from(value)]);
  };
  const number = (value, bytes) => {
    const out = Buffer.alloc(bytes);
    if (bytes === 8) out.writeBigUInt64LE(BigInt(value));
    else out.writeUInt32LE(value);
    return out;
  };
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    number(3, 4),
    number(1, 8),
    number(Object.keys(keys).length, 8),
    ...Object.entries(keys).flatMap(([key, value]) => [text(key), number(8, 4), text(value)]),
    text(name),
    number(2, 4),
    number(size, 8),
    number(size, 8),
    number(0, 4),
    number(0, 8),
  ]);
  return new Uint8Array(
    Buffer.concat([header, Buffer.alloc((32 - (header.length % 32)) % 32), Buffer.alloc(4 * size * size)]),
  );
}
