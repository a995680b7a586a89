// Paths and FileHandles as sources. Not fs.openAsBlob: its blobs are wrong above 2 to 4 GiB (nodejs/node#52585).

import type { Dirent } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { failure, textOf } from '../api/errors.js';
import type { NodeFileHandle, Source } from '../api/types.js';
import { type FileSource, fileSource } from './file_source.js';
import { type Folder, linkedOutside } from './folder.js';
import { linksOutOf } from './node_links.js';
import { isAddress, openSource } from './source.js';

/** A string or file URL as a path; null for a web address. Errors: source-invalid. */
export function pathOf(source: Source | FileSystemDirectoryHandle): string | null {
  if (!isAddress(source)) return null;
  const text = String(source);
  if (!text.startsWith('file:'))
    return typeof source !== 'string' || /^(https?|data|blob|hf):/i.test(text) ? null : text;
  try {
    return fileURLToPath(text);
  } catch (error) {
    throw failure('source-invalid', text, `is not the URL of a file here: ${textOf(error)}`, error);
  }
}

function isNodeFileHandle(source: unknown): source is NodeFileHandle & FileHandle {
  return (
    typeof source === 'object' && source !== null && 'fd' in source && typeof source.fd === 'number' && 'stat' in source
  );
}

/** Node ends the process when a read asks for 2 GiB or more. */
const maxReadBytes = 1 << 30;

async function readFully(handle: FileHandle, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, Math.min(length - done, maxReadBytes), offset + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

/** A file by path, opened at the first read until `close`. */
async function openPath(path: string): Promise<FileSource> {
  const opened = await stat(path, { bigint: true });
  // Reads of pipes and devices wait for good, and no signal ends them.
  if (!opened.isFile())
    throw new Error(opened.isDirectory() ? 'it is a folder' : 'it is a pipe or a device, not a file');
  const size = Number(opened.size);
  const name = basename(path);
  let handle: Promise<FileHandle> | null = null;
  const read = async (offset: number, length: number) => {
    handle ??= open(path, 'r');
    return readFully(await handle, offset, length);
  };
  const close = async () => {
    const closing = handle;
    handle = null;
    if (closing) await (await closing).close();
  };
  const checkUnchanged = async () => {
    const now = await stat(path, { bigint: true }).catch((error: unknown) => {
      throw failure('read-failed', name, `is gone: ${textOf(error)}`, error);
    });
    if (now.size !== opened.size || now.mtimeNs !== opened.mtimeNs || now.ino !== opened.ino)
      throw failure('read-failed', name, 'changed while it was read; run again when it is complete');
  };
  const source = fileSource(name, size, { kind: 'path', name, path }, read, close);
  return {
    ...source,
    checkUnchanged,
    identity: `changed ${new Date(Number(opened.mtimeMs)).toISOString()} (${opened.mtimeNs})`,
  };
}

/** The caller's FileHandle, which must stay open as long as the model and is not closed with it. */
async function openHandle(handle: NodeFileHandle & FileHandle, name: string): Promise<FileSource> {
  const { size } = await handle.stat();
  return fileSource(name, size, { kind: 'descriptor', name, descriptor: handle.fd }, (offset, length) =>
    readFully(handle, offset, length),
  );
}

/** Node's words for the usual errors name its functions. */
function whyNotOpened(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (code === 'ENOENT') return 'there is no such file or folder';
  if (code === 'EACCES') return 'may not be read: permission is denied';
  return `cannot be opened: ${textOf(error)}`;
}

/** Errors: source-invalid. */
export async function openNodeSource(source: Source, fallbackName: string): Promise<FileSource> {
  const path = pathOf(source);
  try {
    if (path !== null) return await openPath(path);
    if (isNodeFileHandle(source)) return await openHandle(source, fallbackName);
  } catch (error) {
    throw failure('source-invalid', path ?? fallbackName, whyNotOpened(error), error);
  }
  return openSource(source, fallbackName);
}

/** Errors: source-invalid if the path does not exist. */
export async function kindOfPath(path: string): Promise<'file' | 'folder'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    throw failure('source-invalid', path, whyNotOpened(error), error);
  }
}

/** Links out of the folder are not among its names. */
export async function pathFolder(path: string): Promise<Folder> {
  const listed = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    throw failure('source-invalid', path, `the folder cannot be listed: ${textOf(error)}`, error);
  });
  const links = await linksOutOf(path, listed);
  const entries = listed.filter(({ name }) => !links.has(name));
  const namesOf = (list: Dirent[]) => list.map(({ name }) => name).sort();
  const names = namesOf(entries.filter((entry) => !entry.isDirectory()));
  return {
    where: path,
    names,
    folders: namesOf(entries.filter((entry) => entry.isDirectory())),
    links,
    async open(name) {
      const real = links.get(name);
      if (real !== undefined) throw failure('source-invalid', join(path, name), linkedOutside(real));
      return names.includes(name) ? openNodeSource(join(path, name), name) : null;
    },
    folder: async (name) =>
      entries.some((entry) => entry.name === name && !entry.isFile()) &&
      (await kindOfPath(join(path, name))) === 'folder'
        ? pathFolder(join(path, name))
        : null,
  };
}

export const folderAround = (path: string) => pathFolder(dirname(path));
