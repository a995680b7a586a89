// Ranges of a Blob, in any order. Each slice that is read by itself costs a browser some milliseconds, however short; ranges
// that follow each other are pieces of one byte stream instead, which the browser fills in the background.

import { readBlob } from './source.js';

/** What of a blob's byte stream is left, read into buffers of the caller's size. */
class BlobStream {
  readonly #reader: ReadableStreamBYOBReader;
  #last: Promise<unknown> = Promise.resolve();
  /** Where the next read begins. */
  position: number;

  /** Null in hosts whose blobs are no byte streams. */
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

  /** The next `length` bytes; fewer where the stream ends or is cancelled. Calls need not wait for each other. */
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
      if (!value) return new Uint8Array(0); // cancelled: the buffer is gone
      buffer = value.buffer;
      filled += value.byteLength;
      if (done) break;
    }
    return new Uint8Array(buffer, 0, filled);
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {}); // of no more use, whatever became of it
  }
}

/** `read` is to be called with ranges inside of the blob; it rejects as the blob does. */
export function blobReader(blob: Blob): {
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): void;
} {
  let stream: BlobStream | null = null;
  let end = -1; // of the range before
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
