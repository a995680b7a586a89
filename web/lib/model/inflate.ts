// Inflates compressed .npz arrays in memory, up to the declared size, which the core has checked.

import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { FileSource } from '../io/file_source.js';
import { openSource } from '../io/source.js';

export interface DeflatedEntry {
  name: string;
  /** Place in the archive, end exclusive. */
  begin: number;
  end: number;
  /** Inflated size, and its CRC-32. */
  bytes: number;
  crc: number;
}

const readBytes = 4 * 1024 * 1024;

/** CRC-32 table (IEEE 802.3, reflected polynomial 0xEDB88320). */
const table = Int32Array.from({ length: 256 }, (_, start) => {
  let value = start;
  for (let bit = 0; bit < 8; ++bit) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) crc = (table[(crc ^ byte) & 255] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

function packedStream(archive: FileSource, { begin, end }: DeflatedEntry): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = begin;
  return new ReadableStream({
    async pull(controller) {
      if (at === end) return controller.close();
      const bytes = await archive.read(at, Math.min(readBytes, end - at));
      at += bytes.byteLength;
      controller.enqueue(bytes.slice());
    },
  });
}

/** Inflates an entry to a file in memory. Errors: file-invalid, read-failed. */
export async function inflate(archive: FileSource, entry: DeflatedEntry): Promise<FileSource> {
  const wrong = (detail: string, cause?: unknown) =>
    failure('file-invalid', archive.name, `${entry.name}: ${detail}; save it again`, cause);
  const all = new Uint8Array(entry.bytes);
  let done = 0;
  const pieces = packedStream(archive, entry).pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  try {
    for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
      const next = done + piece.value.byteLength;
      if (next > all.byteLength) throw wrong(`inflates to more than the ${all.byteLength} bytes it declares`);
      all.set(piece.value, done);
      done = next;
    }
  } catch (error) {
    await pieces.cancel().catch(() => {});
    if (error instanceof QuantizationError) throw error; // read errors too
    throw wrong(`cannot be inflated (${textOf(error)})`, error);
  }
  if (done < all.byteLength) throw wrong(`inflates to ${done} bytes, it declares ${all.byteLength}`);
  if (crc32(all) !== entry.crc) throw wrong('its checksum is wrong');
  return openSource(all, entry.name);
}
