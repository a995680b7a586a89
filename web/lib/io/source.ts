// Input files as FileSource: memory, Blob and File, file handles, URLs, responses, and the caller's {size, read}.

import { shown } from '../api/arguments.js';
import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { ByteSource, Source } from '../api/types.js';
import { readRange, retryWaitsMs } from './range_read.js';
import { type UrlVersion, versionOf } from './url_version.js';

/** What a worker needs to read a file, cloneable; `main`: it asks the main thread for bytes. */
export type RemoteSource =
  | { kind: 'path'; name: string; path: string }
  | { kind: 'descriptor'; name: string; descriptor: number }
  | { kind: 'blob'; name: string; blob: Blob }
  | { kind: 'url'; name: string; url: string; version: UrlVersion }
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

/** Checks that a read returned all bytes. */
export function checkedLength(name: string, offset: number, wanted: number, got: number): void {
  if (got === wanted) return;
  const detail = `ends at byte ${offset + got}, ${wanted} bytes were expected from byte ${offset}; is it still being written or copied?`;
  throw failure('file-truncated', name, detail);
}

/** Converts a host's read error to a QuantizationError. */
export function readFailure(name: string, offset: number, thrown: unknown): QuantizationError {
  if (thrown instanceof QuantizationError) return thrown;
  return failure('read-failed', name, `cannot be read at byte ${offset}: ${textOf(thrown)}`, thrown);
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
  return new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
}

const blobSource = (name: string, blob: Blob) =>
  fileSource(name, blob.size, { kind: 'blob', name, blob }, (offset, length) => readBlob(blob, offset, length));

/** Last part of a URL's path, decoded; also of a path inside that part, as in `..%2fmodel.gguf`. */
export function nameOfUrl(url: URL): string {
  const last = url.pathname.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(last).split(/[\\/]/).at(-1) ?? '';
  } catch {
    return last;
  }
}

const notFetched = (url: URL, error: unknown) =>
  failure('source-invalid', url.href, `cannot be fetched: ${textOf(error)}`, error);

/** Requests the first byte; the response tells the size. */
const ask = (url: URL) => fetch(url, { headers: { Range: 'bytes=0-0' } });

async function answers(url: URL): Promise<boolean> {
  try {
    await (await ask(url)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Asks for a file next to `neighbour`, which has answered before; retries failed connections. Null if the file fails
 * while `neighbour` answers: across origins, browsers report a 404 without CORS headers as a network error. */
async function askBeside(url: URL, neighbour: URL): Promise<Response | null> {
  const mayBeHidden = globalThis.location !== undefined && globalThis.location.origin !== url.origin;
  let isReachable = false;
  for (let tries = 0; ; ) {
    try {
      return await ask(url);
    } catch (error) {
      if (mayBeHidden && (await answers(neighbour))) {
        if (isReachable) return null;
        isReachable = true; // perhaps only again
        continue;
      }
      const wait = retryWaitsMs[tries++];
      if (wait === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** A URL, read by ranges if the server answers 206, else downloaded once, up to `mostBytes`. Null for a missing file (404,
 * 410) next to `neighbour`. */
export async function openUrl(
  url: URL,
  neighbour: URL | null = null,
  mostBytes: number = wholeBytes,
): Promise<FileSource | null> {
  const name = nameOfUrl(url);
  const isBeside = neighbour !== null && neighbour.href !== url.href;
  let response: Response | null;
  try {
    response = isBeside ? await askBeside(url, neighbour) : await ask(url);
  } catch (error) {
    throw notFetched(url, error);
  }
  if (response === null) return null;
  if (!response.ok) {
    await response.body?.cancel();
    if (neighbour && (response.status === 404 || response.status === 410)) return null;
    throw failure('source-invalid', url.href, `the server answered ${response.status} ${response.statusText}`);
  }
  if (response.status !== 206) return openResponse(response, name, mostBytes);
  const version = versionOf(response);
  await response.body?.cancel();
  if (version === null) {
    // Content-Range is hidden across origins unless the server exposes it; then the file is downloaded once.
    const whole = fetch(url).catch((error) => {
      throw notFetched(url, error);
    });
    return openResponse(await whole, name, mostBytes);
  }
  const remote: RemoteSource = { kind: 'url', name, url: url.href, version };
  const read = (offset: number, length: number) => readRange(url.href, offset, length, version);
  const source = fileSource(name, version.size, remote, read);
  return version.etag === null ? source : { ...source, identity: `ETag ${version.etag}` };
}

/** Bytes of a body without Content-Length: it may never end. With a Content-Encoding the field counts packed bytes. */
const undeclaredBytes = 2 ** 28;
/** Bytes of any body: the host keeps it in memory, or where it keeps Blobs. */
const wholeBytes = 2 ** 33;

/** The whole body, of at most `mostBytes`. Errors: file-too-large, before or while it arrives. */
async function wholeBody(response: Response, where: string, mostBytes: number): Promise<Blob> {
  const isPacked = (response.headers.get('content-encoding') ?? 'identity') !== 'identity';
  const declared = Number((isPacked ? null : response.headers.get('content-length')) ?? Number.NaN);
  const limit = Math.min(mostBytes, Number.isNaN(declared) ? undeclaredBytes : wholeBytes);
  const kind = isPacked ? 'unpacked, of a compressed body' : Number.isNaN(declared) ? 'without a Content-Length' : '';
  const refused = (bytes: number) =>
    failure(
      'file-too-large',
      where,
      `${bytes} bytes ${kind} from a server that sends no ranges; at most ${limit} are downloaded. Download the file and open that`,
    );
  if (declared > limit) {
    await response.body?.cancel();
    throw refused(declared);
  }
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    bytes += piece.value.byteLength;
    pieces.push(piece.value);
    if (bytes <= limit) continue;
    await reader?.cancel();
    throw refused(bytes);
  }
  return new Blob(pieces);
}

async function openResponse(response: Response, name: string, mostBytes = wholeBytes): Promise<FileSource> {
  if (!response.ok) {
    throw failure(
      'source-invalid',
      response.url || name,
      `the server answered ${response.status} ${response.statusText}`,
    );
  }
  if (response.bodyUsed)
    throw failure('source-invalid', response.url || name, 'the body of this Response was read already');
  try {
    return blobSource(name, await wholeBody(response, response.url || name, mostBytes));
  } catch (error) {
    if (error instanceof QuantizationError) throw error;
    throw failure('source-invalid', response.url || name, `the download broke off: ${textOf(error)}`, error);
  }
}

function openBytes(bytes: Uint8Array, name: string): FileSource {
  return fileSource(name, bytes.byteLength, { kind: 'main', name }, async (offset, length) =>
    bytes.subarray(offset, offset + length),
  );
}

function openCustom(source: ByteSource, name: string): FileSource {
  if (source.name !== undefined && (typeof source.name !== 'string' || source.name === ''))
    throw failure('argument-invalid', 'source.name', 'is no text; give the file name, or leave it out');
  if (!Number.isSafeInteger(source.size) || source.size < 0) {
    throw failure(
      'source-invalid',
      source.name ?? name,
      `size is ${shown(source.size)}; a whole number of bytes is needed`,
    );
  }
  const named = source.name ?? name;
  return fileSource(named, source.size, { kind: 'main', name: named }, (offset, length) => source.read(offset, length));
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Structural check, because Node has no FileSystemFileHandle class. */
export function isFileHandle(value: unknown): value is FileSystemFileHandle {
  return isObject(value) && 'kind' in value && value.kind === 'file' && 'getFile' in value;
}
export function isDirectoryHandle(value: unknown): value is FileSystemDirectoryHandle {
  return isObject(value) && 'kind' in value && value.kind === 'directory' && 'getFileHandle' in value;
}

/** Opens a source that is not a path. `fallbackName` is for unnamed sources. Errors: source-invalid. */
export async function openSource(source: Source, fallbackName: string): Promise<FileSource> {
  if (source instanceof URL) {
    const opened = await openUrl(source);
    if (opened) return opened;
  }
  if (typeof source === 'string') return openSource(urlOf(source), fallbackName);
  if (source instanceof Blob)
    return blobSource('name' in source && source.name ? String(source.name) : fallbackName, source);
  if (source instanceof Uint8Array) return openBytes(source, fallbackName);
  if (source instanceof ArrayBuffer) return openBytes(new Uint8Array(source), fallbackName);
  if (source instanceof Response)
    return openResponse(source, source.url ? nameOfUrl(new URL(source.url)) : fallbackName);
  if (isFileHandle(source)) {
    try {
      return blobSource(source.name, await source.getFile());
    } catch (error) {
      throw failure('source-invalid', source.name, `the file handle cannot be read: ${textOf(error)}`, error);
    }
  }
  if (isObject(source) && 'read' in source && typeof source.read === 'function' && 'size' in source) {
    return openCustom(source as ByteSource, fallbackName);
  }
  const detail = 'not a source; give a File, Blob, file handle, bytes, URL, Response, {size, read}, or in Node a path';
  throw failure('source-invalid', '', detail);
}

/** A string outside Node as a URL, relative to the page if it has no scheme. */
export function urlOf(text: string): URL {
  try {
    return new URL(text, globalThis.location?.href);
  } catch (error) {
    throw failure('source-invalid', text, 'is not a URL', error);
  }
}
