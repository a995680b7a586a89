// Tensors that a peer wrote, and how ours differ from them.
import { readFileSync } from 'node:fs';

/** Reads F32 tensors of a safetensors file: name to {shape, data}. */
export function readTensors(path) {
  const bytes = readFileSync(path);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, start));
  const tensors = new Map();
  for (const [name, { shape, data_offsets: offsets }] of Object.entries(header)) {
    if (!offsets) continue;
    const [begin, end] = offsets.map((offset) => bytes.byteOffset + start + offset);
    tensors.set(name, { shape, data: new Float32Array(bytes.buffer.slice(begin, end)) });
  }
  return tensors;
}

/** How many values differ, the largest relative difference, the first that does. The sign of a zero does not count. */
export function differenceOf(ours, theirs) {
  const found = { count: 0, largest: 0, first: -1 };
  if (ours.length !== theirs.length) return { count: Infinity, largest: Infinity, first: 0 };
  for (let i = 0; i < theirs.length; ++i) {
    if (ours[i] === theirs[i]) continue;
    if (found.count++ === 0) found.first = i;
    found.largest = Math.max(found.largest, Math.abs(ours[i] - theirs[i]) / Math.max(Math.abs(theirs[i]), 1e-38));
  }
  return found;
}

/** Diagnostics of an error of ours; throws any other. */
export const errorsOf = (error) => {
  if (!error.diagnostics?.length && !error.code) throw error;
  const problems = (error.diagnostics ?? []).filter(({ severity }) => severity === 'error');
  return problems.length > 0 ? problems : [{ code: error.code, where: '', message: error.message }];
};
