// Input files as FileSource: memory, Blob and File, file handles, URLs, responses, and the caller's {size, read}.

import { isObject, shown } from '../api/arguments.js';
import { failure, textOf } from '../api/errors.js';
import { loaded } from '../api/loaded.js';
import type { ByteSource, Source } from '../api/types.js';
import { blobSource, type FileSource, fileSource, nameOfUrl } from './file_source.js';

function openBytes(bytes: Uint8Array, name: string): FileSource {
  return fileSource(name, bytes.byteLength, { kind: 'main', name }, async (offset, length) =>
    bytes.subarray(offset, offset + length),
  );
}

function openCustom(source: ByteSource, name: string): FileSource {
  if (source.name !== undefined && (typeof source.name !== 'string' || source.name === ''))
    throw failure('argument-invalid', 'source.name', 'is not text; give the file name, or leave it out');
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
  if (source instanceof URL) {
    const opened = await (await urlSource()).openUrl(source);
    if (opened) return opened;
  }
  if (typeof source === 'string') return openSource(urlOf(source), fallbackName);
  if (source instanceof Blob)
    return blobSource('name' in source && source.name ? String(source.name) : fallbackName, source);
  if (source instanceof Uint8Array) return openBytes(source, fallbackName);
  if (source instanceof ArrayBuffer) return openBytes(new Uint8Array(source), fallbackName);
  if (source instanceof Response)
    return (await urlSource()).openResponse(source, source.url ? nameOfUrl(new URL(source.url)) : fallbackName);
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
