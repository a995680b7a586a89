// Files of one folder: a directory handle, or a list of sources. Folders of URLs: url_model.ts; of Node: node_source.ts.

import { failure, textOf } from '../api/errors.js';
import type { Source } from '../api/types.js';
import type { FileSource } from './file_source.js';
import { openSource } from './source.js';

export interface Folder {
  /** For messages. */
  readonly where: string;
  /** File names without subfolders; null if the host cannot list (URLs). */
  readonly names: string[] | null;
  /** Names of its folders, but not of links to folders; null if the host cannot list. */
  readonly folders: string[] | null;
  /** Links out of the folder, which are not among its names, and where they lead; not with hosts that have no links. */
  readonly links?: ReadonlyMap<string, string>;
  /** A file directly in it; null if there is none. `mostBytes`: where it has to be downloaded, the download ends there. */
  open(name: string, mostBytes?: number): Promise<FileSource | null>;
  /** A subfolder; null if there is none. */
  folder(name: string): Promise<Folder | null>;
}

/** Of a link that leads out of the model's folder. */
export const linkedOutside = (real: string) =>
  `is a link to ${real}, outside the model's folder; replace the link with a copy of the file`;

/** Opens a file by a relative path, such as the location of ONNX's external data; null if there is none. */
export async function openIn(folder: Folder, path: string): Promise<FileSource | null> {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  const name = parts.pop();
  if (name === undefined || name === '..' || parts.includes('..')) return null;
  let at: Folder | null = folder;
  for (const part of parts) at = (await at?.folder(part)) ?? null;
  return (await at?.open(name)) ?? null;
}

export async function directoryFolder(handle: FileSystemDirectoryHandle): Promise<Folder> {
  const files = new Map<string, FileSystemFileHandle>();
  const folders = new Map<string, FileSystemDirectoryHandle>();
  try {
    for await (const [name, entry] of handle.entries()) {
      if (entry.kind === 'file') files.set(name, entry as FileSystemFileHandle);
      else folders.set(name, entry as FileSystemDirectoryHandle);
    }
  } catch (error) {
    throw failure('source-invalid', handle.name, `the folder cannot be listed: ${textOf(error)}`, error);
  }
  return {
    where: handle.name,
    names: [...files.keys()].sort(),
    folders: [...folders.keys()].sort(),
    open: async (name) => {
      const file = files.get(name);
      return file ? openSource(file, name) : null;
    },
    folder: async (name) => {
      const inner = folders.get(name);
      return inner ? directoryFolder(inner) : null;
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
  return folderOfList(files, '');
}

/** The files of a list whose names start with `prefix`, as a folder. Picked files have names without their folders: such
 * a list stands for its subfolders, too. */
function folderOfList(files: ReadonlyMap<string, FileSource>, prefix: string): Folder {
  const paths = [...files.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const folders = new Set(paths.filter((path) => path.includes('/')).map((path) => path.slice(0, path.indexOf('/'))));
  return {
    where: 'the list of sources',
    names: paths.filter((path) => !path.includes('/')),
    folders: [...folders],
    open: async (name) => {
      const file = files.get(prefix + name);
      return file && prefix !== '' ? { ...file, name } : (file ?? null);
    },
    folder: async (name) => {
      if (folders.has(name)) return folderOfList(files, `${prefix}${name}/`);
      return folders.size > 0 ? null : folderOfList(files, prefix);
    },
  };
}
