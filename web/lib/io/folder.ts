// Files of one folder: a directory handle, the folder of a URL, or a list of sources. Node's folders: node_source.ts.

import { failure, textOf } from '../api/errors.js';
import type { Source } from '../api/types.js';
import type { FileSource } from './source.js';
import { nameOfUrl, openSource, openUrl } from './source.js';

export interface Folder {
  /** For messages. */
  readonly where: string;
  /** File names without subfolders; null if the host cannot list (URLs). */
  readonly names: string[] | null;
  /** Null if there is no such file. `mostBytes`: where a file has to be downloaded, the download ends there. */
  open(name: string, mostBytes?: number): Promise<FileSource | null>;
}

export async function directoryFolder(handle: FileSystemDirectoryHandle): Promise<Folder> {
  const files = new Map<string, FileSystemFileHandle>();
  try {
    for await (const [name, entry] of handle.entries()) {
      if (entry.kind === 'file') files.set(name, entry as FileSystemFileHandle);
    }
  } catch (error) {
    throw failure('source-invalid', handle.name, `the folder cannot be listed: ${textOf(error)}`, error);
  }
  return {
    where: handle.name,
    names: [...files.keys()].sort(),
    open: async (name) => {
      const file = files.get(name);
      return file ? openSource(file, name) : null;
    },
  };
}

export function urlFolder(url: URL): Folder {
  return {
    where: new URL('.', url).href,
    names: null,
    open: async (name, mostBytes) => {
      const beside = new URL(encodeURIComponent(name), url);
      beside.search = url.search;
      return openUrl(beside, url, mostBytes);
    },
  };
}

/** A list of sources; unnamed ones become shards 1 of n, 2 of n... */
export async function listFolder(
  sources: Source[],
  open: (source: Source, name: string) => Promise<FileSource>,
): Promise<Folder> {
  const files = new Map<string, FileSource>();
  const total = String(sources.length).padStart(5, '0');
  for (const [position, source] of sources.entries()) {
    const fallback = `model-${String(position + 1).padStart(5, '0')}-of-${total}.safetensors`;
    const file = await open(source, sources.length === 1 ? 'model.safetensors' : fallback);
    if (files.has(file.name))
      throw failure('source-invalid', file.name, 'two sources of the list have this name; a model has each file once');
    files.set(file.name, file);
  }
  return { where: 'the list of sources', names: [...files.keys()], open: async (name) => files.get(name) ?? null };
}

/** Whether `urlFolder` works for a URL. */
export function hasNeighbours(url: URL): boolean {
  return (url.protocol === 'http:' || url.protocol === 'https:') && nameOfUrl(url) !== '';
}
