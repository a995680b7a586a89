// Where a job gets its bytes from and puts its output to. Sources that are read asynchronously (Blob, URL, the main
// thread) share one implementation: bytes arrive in a buffer and are copied into the heap once.

import { failure } from './errors.js';
import type { Instance } from './instance.js';
import type { TileRead } from './module.js';
import { readRange } from './range_read.js';
import { checkedLength, type RemoteSource, readBlob, readFailure } from './source.js';
import { place, spansOf } from './tile_read.js';

/** One input file, as a job sees it. */
export interface TileInput {
  /** Puts the rows of `read` where it wants them. Errors: file-truncated, read-failed. */
  fill(instance: Instance, read: TileRead): Promise<void>;
  close(): void;
}

/** One output file that the worker writes itself. */
export interface TileOutput {
  /** Writes heap bytes at a file offset. Errors: write-failed. */
  write(instance: Instance, pointer: number, bytes: number, offset: number): void;
  close(): void;
}

/** What differs between browser and Node inside a worker. */
export interface WorkerHost {
  openInput(source: RemoteSource, ask: ReadRange): TileInput;
  openOutput(name: string, path: string): TileOutput;
}

export type ReadRange = (offset: number, length: number) => Promise<Uint8Array>;

/** Unneeded bytes that cost less than one more request, by kind of source. */
const gapBytes = { blob: 64 * 1024, url: 1024 * 1024, main: 64 * 1024 };

function asyncInput(name: string, gap: number, readBytes: ReadRange): TileInput {
  return {
    async fill(instance, read) {
      for (const span of spansOf(read, gap)) {
        const bytes = await readBytes(span.begin, span.bytes).catch((error: unknown) => {
          throw readFailure(name, span.begin, error);
        });
        checkedLength(name, span.begin, span.bytes, bytes.byteLength);
        place(instance, read, span, bytes);
      }
    },
    close() {},
  };
}

/** Input for the sources that every host has. `ask` reads in the main thread. */
export function openPortableInput(source: RemoteSource, ask: ReadRange): TileInput {
  switch (source.kind) {
    case 'blob':
      return asyncInput(source.name, gapBytes.blob, (offset, length) => readBlob(source.blob, offset, length));
    case 'url':
      return asyncInput(source.name, gapBytes.url, (offset, length) =>
        readRange(source.url, offset, length, source.tag),
      );
    default:
      return asyncInput(source.name, gapBytes.main, ask);
  }
}

/** For hosts where workers cannot write files themselves. */
export function noOutput(name: string): never {
  throw failure('target-invalid', name, 'cannot be written by path in this host');
}
