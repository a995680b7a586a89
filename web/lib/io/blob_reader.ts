// Ranges of a Blob, in any order. A separate slice costs a browser milliseconds, however short, so consecutive ranges
// are read from one byte stream that the browser fills in the background.

import { readBlob } from './file_source.js';

/** The rest of a blob's byte stream, read into buffers of any size. */
class BlobStream {
  readonly #reader: ReadableStreamBYOBReader;
  #last: Promise<unknown> = Promise.resolve();
  position: number;

  /** Null if the host's blobs are not byte streams. */
  static open(blob: Blob, offset: number): BlobStream | null {
    try {
      return new BlobStream(blob.slice(offset).stream().getReader({ mode: 'byob' }), offset);
    } catch {
      return null;
    }
  }

  private constructor(reader: ReadableStreamBYOBReader, offset: number) {
    this.#reader = reader;
    this.position = offset;
  }

  /** The next `length` bytes, fewer if the stream ends or is cancelled. Calls may overlap. */
  read(length: number): Promise<Uint8Array> {
    this.position += length;
    const bytes = this.#last.then(() => this.#fill(length));
    this.#last = bytes.catch(() => {});
    return bytes;
  }

  async #fill(length: number): Promise<Uint8Array> {
    let buffer = new ArrayBuffer(length);
    let filled = 0;
    while (filled < length) {
      const { value, done } = await this.#reader.read(new Uint8Array(buffer, filled, length - filled));
      if (!value) return new Uint8Array(0); // cancelled: the buffer is detached
      buffer = value.buffer;
      filled += value.byteLength;
      if (done) break;
    }
    return new Uint8Array(buffer, 0, filled);
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {}); // its result no longer matters
  }
}

/** Reads ranges inside the blob; rejects as the blob does. */
export function blobReader(blob: Blob): {
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): void;
} {
  let stream: BlobStream | null = null;
  let end = -1; // of the previous range
  return {
    read(offset, length) {
      const isNext = offset === end;
      end = offset + length;
      if (stream?.position === offset) return stream.read(length);
      stream?.cancel();
      stream = isNext ? BlobStream.open(blob, offset) : null;
      return stream?.read(length) ?? readBlob(blob, offset, length);
    },
    close() {
      stream?.cancel();
      stream = null;
    },
  };
}
