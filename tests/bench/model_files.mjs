// Inputs of the file bench: a safetensors model of random weights, the same weights as GGUF for llama-quantize, and a sparse
// safetensors model that takes no disk. Layouts: safetensors = u64 header length, JSON, data; GGUF v3 as in ggml's gguf.h.
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';

/** Roughly normal values (mean of four uniforms), the same on every run, scaled as trained weights are. */
export function weights(count, seed) {
  const data = new Float32Array(count);
  let state = seed | 1;
  for (let index = 0; index < count; index++) {
    let sum = 0;
    for (let term = 0; term < 4; term++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      sum += state;
    }
    data[index] = (sum / 4 / 2 ** 31) * 0.05;
  }
  return data;
}

/** `tensors`: [{ name, shape }], all F32. Bytes of the header and of the data. */
function safetensorsHeader(tensors) {
  const header = { __metadata__: { format: 'pt' } };
  let end = 0;
  for (const { name, shape } of tensors) {
    const begin = end;
    end += 4 * shape.reduce((product, length) => product * length, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const json = JSON.stringify(header);
  const text = json.padEnd(Math.ceil(json.length / 8) * 8);
  const bytes = Buffer.alloc(8 + text.length);
  bytes.writeBigUInt64LE(BigInt(text.length));
  bytes.write(text, 8, 'latin1');
  return { bytes, dataBytes: end };
}

function writeWhole(file, bytes) {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
}

/** Writes the tensors with `block`'s values, over and over. */
export function writeSafetensors(path, tensors, block) {
  const file = openSync(path, 'w');
  writeWhole(file, safetensorsHeader(tensors).bytes);
  for (const { shape } of tensors) writeWhole(file, bytesOf(block, shape));
  closeSync(file);
}

/** Writes the header only; the data is a hole that reads as zeros. Returns the file size. */
export function writeSparseSafetensors(path, tensors) {
  const { bytes, dataBytes } = safetensorsHeader(tensors);
  const file = openSync(path, 'w');
  writeWhole(file, bytes);
  ftruncateSync(file, bytes.length + dataBytes);
  closeSync(file);
  return bytes.length + dataBytes;
}

function bytesOf(block, shape) {
  const count = shape.reduce((product, length) => product * length, 1);
  if (count > block.length)
    throw new Error(`a tensor of ${count} values needs a block of at least that many, found ${block.length}`);
  return new Uint8Array(block.buffer, block.byteOffset, 4 * count);
}

const ggufType = { uint32: 4, float32: 6, string: 8 };
const ggufAlignment = 32;

/** Writes a GGUF that llama-quantize takes: architecture llama without vocabulary, one `ffn_up` per layer, F32. */
export function writeGguf(path, { layers, shape }, block) {
  const parts = [];
  const u32 = (value) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    parts.push(bytes);
  };
  const u64 = (value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    parts.push(bytes);
  };
  const string = (text) => {
    u64(text.length);
    parts.push(Buffer.from(text, 'latin1'));
  };
  const pairs = [
    ['general.architecture', 'string', 'llama'],
    ['llama.context_length', 'uint32', 256],
    ['llama.embedding_length', 'uint32', shape[1]],
    ['llama.block_count', 'uint32', layers],
    ['llama.feed_forward_length', 'uint32', shape[0]],
    ['llama.attention.head_count', 'uint32', 32],
    ['llama.attention.layer_norm_rms_epsilon', 'float32', 1e-5],
    ['tokenizer.ggml.model', 'string', 'no_vocab'],
  ];
  parts.push(Buffer.from('GGUF'));
  u32(3);
  u64(layers);
  u64(pairs.length);
  for (const [key, type, value] of pairs) {
    string(key);
    u32(ggufType[type]);
    if (type === 'string') string(value);
    else if (type === 'uint32') u32(value);
    else parts.push(Buffer.from(new Float32Array([value]).buffer));
  }
  const bytes = bytesOf(block, shape);
  for (let layer = 0; layer < layers; layer++) {
    string(`blk.${layer}.ffn_up.weight`);
    u32(2);
    u64(shape[1]); // the fastest dimension comes first
    u64(shape[0]);
    u32(0); // F32
    u64(layer * bytes.length);
  }
  const header = Buffer.concat(parts);
  const file = openSync(path, 'w');
  writeWhole(file, header);
  writeWhole(file, Buffer.alloc((ggufAlignment - (header.length % ggufAlignment)) % ggufAlignment));
  for (let layer = 0; layer < layers; layer++) writeWhole(file, bytes);
  closeSync(file);
}
