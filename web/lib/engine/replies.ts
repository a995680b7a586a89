// What the numbers of a reply say (bindings/border/reply.h).
import type { HeapBytes, StoredTile, TileRead } from './module.js';

/** Of a unit; see StoredTile. */
export const sumsPerUnit = 7;

/** Rows of `width` numbers. */
function rowsOf<T>(numbers: Float64Array, width: number, row: (...values: number[]) => T): T[] {
  return Array.from({ length: numbers.length / width }, (_, i) => row(...numbers.subarray(i * width, (i + 1) * width)));
}

export const regionsOf = (numbers: Float64Array): HeapBytes[] =>
  rowsOf(numbers, 2, (pointer = 0, bytes = 0) => ({ pointer, bytes }));

export const readsOf = (numbers: Float64Array): TileRead[] =>
  rowsOf(numbers, 7, (part = 0, file = 0, begin = 0, rowBytes = 0, stride = 0, rows = 0, pointer = 0) => ({
    part,
    file,
    begin,
    rowBytes,
    stride,
    rows,
    pointer,
  }));

export function tileOf(numbers: Float64Array): StoredTile {
  const end = 1 + (numbers[0] ?? 0) * sumsPerUnit;
  const write = (file = 0, offset = 0, pointer = 0, bytes = 0) => ({ file, offset, pointer, bytes });
  return { sums: numbers.slice(1, end), writes: rowsOf(numbers.subarray(end), 4, write) };
}
