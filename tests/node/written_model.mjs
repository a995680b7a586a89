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
