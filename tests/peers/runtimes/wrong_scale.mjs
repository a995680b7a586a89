// A reference with one wrong scale: what one scale of a down_proj covers, doubled in the dequantized weights. A bound that lets it pass is
// of no use.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const bytesOfDtype = { F32: 4, F16: 2, BF16: 2 };

/** Adds 1 to the exponent of the floats of `count` rows of one row of the matrix, in place. Zeros stay. */
function double(bytes, dtype) {
  const width = bytesOfDtype[dtype];
  for (let at = 0; at < bytes.length; at += width)
    if (width === 4) bytes.writeFloatLE(bytes.readFloatLE(at) * 2, at);
    else {
      const code = bytes.readUInt16LE(at);
      const oneExponent = dtype === 'BF16' ? 1 << 7 : 1 << 10;
      if ((code & 0x7fff) >= oneExponent) bytes.writeUInt16LE(code + oneExponent, at);
    }
}

/** Copies `folder` (safetensors) with one scale's weights of the first down_proj doubled. `length`: weights a scale; 0: the matrix. */
export function withWrongScale(folder, length) {
  const target = `${folder}-wrong`;
  cpSync(folder, target, { recursive: true });
  const path = join(target, 'model.safetensors');
  const file = readFileSync(path);
  const start = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, start));
  const name = Object.keys(header).find((one) => /^model\.layers\.0\..*down_proj\.weight$/.test(one));
  const {
    dtype,
    shape,
    data_offsets: [begin, end],
  } = header[name];
  const covered = { matrix: end - begin, row: shape.at(-1) * bytesOfDtype[dtype] };
  const bytes = length === 0 ? covered.matrix : Math.min(covered.row, length * bytesOfDtype[dtype]);
  double(file.subarray(start + begin, start + begin + bytes), dtype);
  writeFileSync(path, file);
  return target;
}
