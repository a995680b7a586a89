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

/** The files of a folder. A model is one folder, subfolders (original) are other models; but an ONNX file may have its
 * weights in subfolders, and repositories for transformers.js have all of theirs in `onnx`. */
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
    if (isWhole || (!hasWeights && inner.name === 'onnx'))
      files.push(...(await filesOfFolder(inner, `${path}${inner.name}/`)));
  return files;
}

export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  // Entries must be taken before the first await: the list is emptied when the event handler returns.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return [...transfer.files];
  const files: File[] = [];
  for (const entry of entries) {
    if (entry.isFile) files.push(await readFile(entry as FileSystemFileEntry));
    else files.push(...(await filesOfFolder(entry as FileSystemDirectoryEntry)));
  }
  return files;
}
