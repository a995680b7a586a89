// Input files as FileSource: memory, Blob and File, file handles, URLs, responses, and the caller's {size, read}.

import { isObject, shown } from '../api/arguments.js';
import { failure, textOf } from '../api/errors.js';
import { loaded } from '../api/loaded.js';
import type { ByteSource, Source } from '../api/types.js';
import { arrayName, arrayOf, tagOf } from '../api/values.js';
import { blobSource, type FileSource, fileSource, nameOfUrl } from './file_source.js';

function openBytes(bytes: Uint8Array, name: string): FileSource {
  return fileSource(name, bytes.byteLength, { kind: 'main', name }, async (offset, length) =>
    bytes.subarray(offset, offset + length),
  );
}

function openCustom(source: ByteSource, fallbackName: string): FileSource {
  const { size, name = fallbackName } = source;
  if (typeof name !== 'string' || name === '')
    throw failure('argument-invalid', 'source.name', 'is not text; give the file name, or leave it out');
  if (!Number.isSafeInteger(size) || size < 0)
    throw failure('source-invalid', name, `size is ${shown(size)}; a whole number of bytes is needed`);
  return fileSource(name, size, { kind: 'main', name }, (offset, length) => source.read(offset, length));
}

/** Structural check, because Node has no FileSystemFileHandle class. */
export function isFileHandle(value: unknown): value is FileSystemFileHandle {
  return isObject(value) && 'kind' in value && value.kind === 'file' && 'getFile' in value;
}
export function isDirectoryHandle(value: unknown): value is FileSystemDirectoryHandle {
  return isObject(value) && 'kind' in value && value.kind === 'directory' && 'getFileHandle' in value;
}

/** Loaded when a URL or a Response is opened. */
export const urlSource = () => loaded(import('./url_source.js'));

/** Opens a source that is not a path. `fallbackName` is for unnamed sources. Errors: source-invalid. */
export async function openSource(source: Source, fallbackName: string): Promise<FileSource> {
  const tag = tagOf(source);
  if (isAddress(source)) {
    const opened = await (await urlSource()).openUrl(urlOf(source));
    if (opened) return opened;
  }
  if (tag === 'Blob' || tag === 'File') {
    const blob = source as Blob & { name?: unknown };
    return blobSource(blob.name ? String(blob.name) : fallbackName, blob);
  }
  if (arrayName(source) === 'Uint8Array') return openBytes(arrayOf(source, 'source').bytes, fallbackName);
  if (tag === 'ArrayBuffer') return openBytes(bytesOf(source as ArrayBuffer), fallbackName);
  if (tag === 'Response') {
    const { url } = source as Response;
    return (await urlSource()).openResponse(source as Response, url ? nameOfUrl(new URL(url)) : fallbackName);
  }
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
  const detail =
    'not a source; give a File, Blob, file handle, bytes, URL, Response, {size, read}, {url}, {hub}, or in Node a path';
  throw failure('source-invalid', '', detail);
}

function bytesOf(buffer: ArrayBuffer): Uint8Array {
  try {
    return new Uint8Array(buffer);
  } catch (error) {
    throw failure('argument-invalid', 'source', 'has no memory: it was transferred; give a copy', error);
  }
}

/** A text or a URL of any realm. */
export const isAddress = (source: unknown): source is string | URL =>
  typeof source === 'string' || tagOf(source) === 'URL';

/** A text outside Node, or a URL of any realm, as a URL; relative to the page if it has no scheme. */
export function urlOf(source: string | URL): URL {
  const text = String(source);
  try {
    return new URL(text, globalThis.location?.href);
  } catch (error) {
    throw failure('source-invalid', text, 'is not a URL', error);
  }
}
