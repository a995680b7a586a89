// Input and output of a job. Asynchronous sources (Blob, URL, main thread) share one implementation, with one copy.

import { failure } from '../api/errors.js';
import type { Instance } from '../engine/instance.js';
import type { TileRead } from '../engine/module.js';
import { blobReader } from '../io/blob_reader.js';
import { checkedLength, type RemoteSource, readFailure } from '../io/file_source.js';
import { readRange } from '../io/range_read.js';
import { place, spansOf } from './tile_read.js';

export interface TileInput {
  /** Reads the rows of `read` into the heap. `following`: number of contiguous reads of the same size (the last may be
   * shorter) that come next. Errors: file-truncated, read-failed. */
  fill(instance: Instance, read: TileRead, following: number): Promise<void>;
  close(): void;
}

export interface TileOutput {
  /** Writes heap bytes at a file offset, perhaps asynchronously; await the result before the next call. Errors:
   * write-failed, of this or an earlier call. */
  write(instance: Instance, pointer: number, bytes: number, offset: number): Promise<void> | void;
  /** Resolves when everything is written; call before close. Errors: write-failed. */
  settle(): Promise<void>;
  close(): void;
}

export interface WorkerHost {
  openInput(source: RemoteSource, ask: ReadRange): TileInput;
  openOutput(name: string, path: string): TileOutput;
}

export type ReadRange = (offset: number, length: number) => Promise<Uint8Array>;

/** Unneeded bytes that cost less than another request, by kind of source. */
const gapBytes = { blob: 64 * 1024, url: 1024 * 1024, main: 64 * 1024 };

/** Reads in flight while a tile is processed: one hides the work, the second also the transfer from another process. */
const readsAhead = 2;

/** Input from `readBytes`. Consecutive tiles are requested ahead, up to `size`, the end of the file. */
function asyncInput(name: string, size: number, gap: number, readBytes: ReadRange, end = () => {}): TileInput {
  let ahead: { begin: number; bytes: Promise<Uint8Array> }[] = [];
  const taken = async (begin: number, length: number): Promise<Uint8Array> => {
    const next = ahead.shift();
    if (next?.begin === begin) {
      const bytes = await next.bytes;
      if (bytes.byteLength >= length) return bytes.subarray(0, length); // the last tile is shorter
    }
    ahead = [];
    return readBytes(begin, length);
  };
  const askFor = (behind: number, length: number, tiles: number) => {
    for (let at = ahead.length; at < Math.min(readsAhead, tiles); ++at) {
      const begin = behind + at * length;
      if (begin + length > size) return;
      const bytes = readBytes(begin, length);
      bytes.catch(() => {}); // the reader sees the failure
      ahead.push({ begin, bytes });
    }
  };
  return {
    async fill(instance, read, following) {
      for (const span of spansOf(read, gap)) {
        const bytes = await taken(span.begin, span.bytes).catch((error: unknown) => {
          throw readFailure(name, span.begin, error);
        });
        checkedLength(name, span.begin, span.bytes, bytes.byteLength);
        if (span.contiguous && span.rows === read.rows) askFor(span.begin + span.bytes, span.bytes, following);
        place(instance, read, span, bytes);
      }
    },
    close() {
      ahead = [];
      end();
    },
  };
}

/** Input for the sources that every host has. `ask` reads in the main thread. */
export function openPortableInput(source: RemoteSource, ask: ReadRange): TileInput {
  switch (source.kind) {
    case 'blob': {
      const reader = blobReader(source.blob);
      return asyncInput(source.name, source.blob.size, gapBytes.blob, reader.read, reader.close);
    }
    case 'url':
      return asyncInput(source.name, source.version.size, gapBytes.url, (offset, length) =>
        readRange(source.url, offset, length, source.version, source.headers),
      );
    default:
      // A custom source reads exactly what is requested, and its end is unknown here.
      return asyncInput(source.name, 0, gapBytes.main, ask);
  }
}

/** For hosts whose workers cannot write files. */
export function noOutput(name: string): never {
  throw failure('target-invalid', name, 'cannot be written by path in this host');
}
