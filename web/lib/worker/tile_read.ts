// A TileRead as requests: contiguous rows are one; strided rows are gathered from spans if the gaps are cheap.

import { failure } from '../api/errors.js';
import type { Instance } from '../engine/instance.js';
import type { TileRead } from '../engine/module.js';

/** Longest span to gather rows from, in bytes. */
const spanBytes = 4 * 1024 * 1024;

/** One request: `bytes` from `begin` contain rows `firstRow` to `firstRow + rows` (exclusive), `stride` apart. */
export interface ReadSpan {
  begin: number;
  bytes: number;
  firstRow: number;
  rows: number;
  contiguous: boolean;
}

/** `gapBytes`: number of unneeded bytes that read as fast as another request to this kind of source. */
export function* spansOf(read: TileRead, gapBytes: number): Generator<ReadSpan> {
  const { begin, rowBytes, stride, rows } = read;
  if (rows === 0 || rowBytes === 0) return;
  if (!Number.isSafeInteger(begin + rows * stride)) {
    throw failure('file-too-large', '', `byte ${begin} + ${rows} rows of stride ${stride} is beyond 2^53`);
  }
  if (rows === 1 || stride === rowBytes) {
    yield { begin, bytes: rows * rowBytes, firstRow: 0, rows, contiguous: true };
    return;
  }
  const gather = stride - rowBytes <= gapBytes;
  const rowsPerSpan = gather ? Math.max(1, Math.floor((spanBytes - rowBytes) / stride) + 1) : 1;
  for (let firstRow = 0; firstRow < rows; firstRow += rowsPerSpan) {
    const count = Math.min(rowsPerSpan, rows - firstRow);
    const bytes = (count - 1) * stride + rowBytes;
    yield { begin: begin + firstRow * stride, bytes, firstRow, rows: count, contiguous: count === 1 };
  }
}

export function landing(read: TileRead, span: ReadSpan): number {
  return read.pointer + span.firstRow * read.rowBytes;
}

export function place(instance: Instance, read: TileRead, span: ReadSpan, bytes: Uint8Array): void {
  const { rowBytes, stride } = read;
  if (span.contiguous) {
    instance.copyIn(landing(read, span), bytes);
    return;
  }
  instance.lend(landing(read, span), span.rows * rowBytes, (view) => {
    for (let row = 0; row < span.rows; ++row) {
      view.set(bytes.subarray(row * stride, row * stride + rowBytes), row * rowBytes);
    }
  });
}
