// A file that can be read by ranges, and the checks that all of them share.

import { isObject } from '../api/arguments.js';
import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { UrlVersion } from './url_version.js';

/** What a worker needs to read a file, cloneable; `main`: it asks the main thread for bytes. */
export type RemoteSource =
  | { kind: 'path'; name: string; path: string }
  | { kind: 'descriptor'; name: string; descriptor: number }
  | { kind: 'blob'; name: string; blob: Blob }
  | { kind: 'url'; name: string; url: string; version: UrlVersion; headers: Record<string, string> }
  | { kind: 'main'; name: string };

/** An opened file of a model. */
export interface FileSource {
  readonly name: string;
  readonly size: number;
  readonly remote: RemoteSource;
  /** Exactly `length` bytes from `offset`. Errors: file-truncated, read-failed. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Releases resources; a later read opens them again. */
  close(): Promise<void>;
  /** Checks, if the host can, that the file has not changed since it was opened. Errors: read-failed. */
  checkUnchanged?(): Promise<void>;
  /** Distinguishes the contents from other files of the same name and size, if the host can. */
  readonly identity?: string;
}

/** Of a file next to the weights. Vocabulary files take some 20 MB; larger files are something else. */
export const maxSiblingBytes = 64 * 1024 * 1024;

/** Checks that a read returned all bytes. */
export function checkedLength(name: string, offset: number, wanted: number, got: number): void {
  if (got === wanted) return;
  const detail = `ends at byte ${offset + got}, ${wanted} bytes were expected from byte ${offset}; is it still being written or copied?`;
  throw failure('file-truncated', name, detail);
}

/** What the File API calls a file that is not the one that was chosen any more. */
const changedNames: unknown[] = ['NotReadableError', 'NotFoundError'];

/** Converts a host's read error to a QuantizationError. */
export function readFailure(name: string, offset: number, thrown: unknown): QuantizationError {
  if (thrown instanceof QuantizationError) return thrown;
  const isChanged = isObject(thrown) && 'name' in thrown && changedNames.includes(thrown.name);
  const why = isChanged ? 'it has changed, moved or been deleted since it was chosen; choose it again' : textOf(thrown);
  return failure('read-failed', name, `cannot be read at byte ${offset}: ${why}`, thrown);
}

/** A source that reads through `fetchBytes`, with the common checks. */
export function fileSource(
  name: string,
  size: number,
  remote: RemoteSource,
  fetchBytes: (offset: number, length: number) => Promise<Uint8Array>,
  close: () => Promise<void> = async () => {},
): FileSource {
  return {
    name,
    size,
    remote,
    close,
    async read(offset, length) {
      let bytes: Uint8Array;
      try {
        const fetched = await fetchBytes(offset, length);
        if (!ArrayBuffer.isView(fetched)) throw new Error('read() gave no Uint8Array');
        const { buffer, byteOffset, byteLength } = fetched;
        bytes = new Uint8Array(buffer, byteOffset, byteLength); // its slice copies; Buffer's does not
      } catch (error) {
        throw readFailure(name, offset, error);
      }
      checkedLength(name, offset, length, bytes.byteLength);
      return bytes;
    },
  };
}

export async function readBlob(blob: Blob, offset: number, length: number): Promise<Uint8Array> {
  const piece = blob.slice(offset, offset + length);
  if ('arrayBuffer' in piece) return new Uint8Array(await piece.arrayBuffer());
  const reader = new FileReader(); // jsdom's Blobs have no more before version 27
  await new Promise((done, failed) => {
    reader.onload = done;
    reader.onerror = () => failed(reader.error);
    reader.readAsArrayBuffer(piece);
  });
  return new Uint8Array(reader.result as ArrayBuffer);
}

/** jsdom's Blobs arrive as empty objects where they are posted: this thread reads them. */
function isCloneable(blob: Blob): boolean {
  try {
    return structuredClone(blob).size === blob.size;
  } catch {
    return false;
  }
}

export function blobSource(name: string, blob: Blob): FileSource {
  const remote: RemoteSource = isCloneable(blob) ? { kind: 'blob', name, blob } : { kind: 'main', name };
  return fileSource(name, blob.size, remote, (offset, length) => readBlob(blob, offset, length));
}

/** A part of a path as URLs spell it, and the other way round. Errors: source-invalid. */
export const escaped = (text: string) => converted(encodeURIComponent, text);
export const unescaped = (text: string) => converted(decodeURIComponent, text);

function converted(convert: (text: string) => string, text: string): string {
  try {
    return convert(text);
  } catch (error) {
    throw failure('source-invalid', text, `cannot be part of a URL: ${textOf(error)}`, error);
  }
}

/** Last part of a URL's path, decoded; also of a path inside that part, as in `..%2fmodel.gguf`. */
export function nameOfUrl(url: URL): string {
  const last = url.pathname.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(last).split(/[\\/]/).at(-1) ?? '';
  } catch {
    return last;
  }
}
