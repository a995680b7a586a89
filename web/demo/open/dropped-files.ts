// Files from a drop, including folders.
import { weightFilePattern } from 'wasmquant';

function readEntries(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function readFile(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** The same file under a path, without a copy of its bytes. */
const at = (path: string, file: File) =>
  path === '' ? file : new File([file], `${path}${file.name}`, { lastModified: file.lastModified });

/** Of sentence-transformers: they say how states become embeddings. */
const modulePattern = /^\d+_[A-Z]\w*$/;

/** The files of a folder. A model is one folder, subfolders (original) are other models; but an ONNX file may have its
 * weights in subfolders, repositories for transformers.js have all of theirs in `onnx`, and encoders have folders of modules. */
async function filesOfFolder(folder: FileSystemDirectoryEntry, path = ''): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  const folders: FileSystemDirectoryEntry[] = [];
  // A reader returns batches; an empty batch is the end.
  for (let batch = await readEntries(reader); batch.length > 0; batch = await readEntries(reader)) {
    for (const entry of batch) {
      if (entry.isFile) files.push(at(path, await readFile(entry as FileSystemFileEntry)));
      else folders.push(entry as FileSystemDirectoryEntry);
    }
  }
  const isWhole = path !== '' || files.some(({ name }) => /\.onnx$/i.test(name));
  const hasWeights = files.some(({ name }) => weightFilePattern.test(name));
  for (const inner of folders)
    if (isWhole || modulePattern.test(inner.name) || (!hasWeights && inner.name === 'onnx'))
      files.push(...(await filesOfFolder(inner, `${path}${inner.name}/`)));
  return files;
}

/** Files, and the name of the folder that they are of; null for single files. */
export interface FoundFiles {
  files: File[];
  folder: string | null;
}

/** The same selection of a chosen folder, of which a browser lists everything, with paths. */
export function chosenFolder(list: readonly File[]): FoundFiles {
  const parts = (file: File) => file.webkitRelativePath.split('/').slice(1);
  const top = list.filter((file) => parts(file).length === 1);
  const isWhole = top.some(({ name }) => /\.onnx$/i.test(name));
  const hasWeights = top.some(({ name }) => weightFilePattern.test(name));
  const files = list.flatMap((file) => {
    const [first = '', ...rest] = parts(file);
    if (rest.length === 0) return [file];
    const isTaken = isWhole || modulePattern.test(first) || (!hasWeights && first === 'onnx');
    return isTaken ? [at([first, ...rest.slice(0, -1), ''].join('/'), file)] : [];
  });
  return { files, folder: list[0]?.webkitRelativePath.split('/')[0] ?? null };
}

export async function droppedFiles(transfer: DataTransfer): Promise<FoundFiles> {
  // Entries must be taken before the first await: the list is emptied when the event handler returns.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return { files: [...transfer.files], folder: null };
  const files: File[] = [];
  for (const entry of entries) {
    if (entry.isFile) files.push(await readFile(entry as FileSystemFileEntry));
    else files.push(...(await filesOfFolder(entry as FileSystemDirectoryEntry)));
  }
  const [only] = entries;
  return { files, folder: entries.length === 1 && only?.isDirectory ? only.name : null };
}
