// Paths and descriptors in a Node worker: positioned synchronous reads straight into the heap. Reading ahead would save
// nothing: copying from a buffer takes as long as reading cached pages.

import { closeSync, openSync, readSync } from 'node:fs';
import type { Instance } from '../engine/instance.js';
import { checkedLength, readFailure } from '../io/file_source.js';
import { pathOutput } from './node_tile_output.js';
import { openPortableInput, type TileInput, type WorkerHost } from './tile_input.js';
import { landing, place, spansOf } from './tile_read.js';

/** A positioned read of a cached file costs about 2 µs, as much as copying this many bytes. */
const gapBytes = 16 * 1024;

function readInto(name: string, descriptor: number, view: Uint8Array, offset: number): void {
  let done = 0;
  while (done < view.byteLength) {
    let got: number;
    try {
      got = readSync(descriptor, view, done, view.byteLength - done, offset + done);
    } catch (error) {
      throw readFailure(name, offset + done, error);
    }
    if (got === 0) checkedLength(name, offset, view.byteLength, done);
    done += got;
  }
}

function descriptorInput(name: string, descriptor: number, close: () => void): TileInput {
  let span: Uint8Array | null = null;
  return {
    async fill(instance: Instance, read) {
      for (const piece of spansOf(read, gapBytes)) {
        if (piece.contiguous) {
          instance.lend(landing(read, piece), piece.bytes, (view) => readInto(name, descriptor, view, piece.begin));
          continue;
        }
        if (span === null || span.byteLength < piece.bytes) span = new Uint8Array(piece.bytes);
        const bytes = span.subarray(0, piece.bytes);
        readInto(name, descriptor, bytes, piece.begin);
        place(instance, read, piece, bytes);
      }
    },
    close,
  };
}

function pathInput(name: string, path: string): TileInput {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    throw readFailure(name, 0, error);
  }
  return descriptorInput(name, descriptor, () => closeSync(descriptor));
}

export const nodeWorkerHost: WorkerHost = {
  openInput(source, ask) {
    if (source.kind === 'path') return pathInput(source.name, source.path);
    if (source.kind === 'descriptor') return descriptorInput(source.name, source.descriptor, () => {});
    return openPortableInput(source, ask);
  },
  openOutput: pathOutput,
};
