// Token ids of tests/files/tiny-llama-reference, for both sides.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { root } from '../../setup/command.mjs';

/** The first `length` tokens of the first sequences of a file: {data, shape}. */
export function tokensOf(name, [sequences, length]) {
  const file = join(root, 'tests/files/tiny-llama-reference', `${name}_tokens.safetensors`);
  const { data, shape } = readTensors(file).get('input_ids');
  const rows = Array.from({ length: sequences }, (_, row) => [
    ...data.subarray(row * shape[1], row * shape[1] + length),
  ]);
  return { data: Int32Array.from(rows.flat()), shape: [sequences, length] };
}

/** Writes them as `input_ids` of a safetensors file; gives them back. */
export function writeSlice(name, extent, path) {
  const tokens = tokensOf(name, extent);
  const bytes = Buffer.from(tokens.data.buffer);
  const header = Buffer.from(
    JSON.stringify({ input_ids: { dtype: 'I32', shape: tokens.shape, data_offsets: [0, bytes.length] } }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(path, Buffer.concat([length, header, bytes]));
  return tokens;
}
