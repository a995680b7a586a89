// Files from a drop, including folders.

function readEntries(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function readFile(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** The same file under a path, without a copy of its bytes. */
const at = (path: string, file: File) => new File([file], path, { lastModified: file.lastModified });

/** Folders of tools, with thousands of files. */
const skipped = /^(\.git|\.cache|\.?venv|node_modules|__pycache__)$/;

/** Every file of a folder, with its path: the library decides what belongs to the model. */
async function filesOfFolder(folder: FileSystemDirectoryEntry, path: string): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  // A reader returns batches; an empty batch is the end.
  for (let batch = await readEntries(reader); batch.length > 0; batch = await readEntries(reader)) {
    for (const entry of batch) {
      const own = `${path}/${entry.name}`;
      if (entry.isFile) files.push(at(own, await readFile(entry as FileSystemFileEntry)));
      else if (!skipped.test(entry.name)) files.push(...(await filesOfFolder(entry as FileSystemDirectoryEntry, own)));
    }
  }
  return files;
}

/** Files, and the name of the folder that they are of, with which their paths begin; null for single files. */
export interface FoundFiles {
  files: File[];
  folder: string | null;
}

/** The files of a chosen folder, of which a browser lists everything, with paths. */
export function chosenFolder(list: readonly File[]): FoundFiles {
  const files = list.filter(({ webkitRelativePath: path }) => !path.split('/').some((part) => skipped.test(part)));
  return {
    files: files.map((file) => at(file.webkitRelativePath, file)),
    folder: list[0]?.webkitRelativePath.split('/')[0] ?? null,
  };
}

export async function droppedFiles(transfer: DataTransfer): Promise<FoundFiles> {
  // Entries must be taken before the first await: the list is emptied when the event handler returns.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return { files: [...transfer.files], folder: null };
  const files: File[] = [];
  for (const entry of entries) {
    if (entry.isFile) files.push(await readFile(entry as FileSystemFileEntry));
    else files.push(...(await filesOfFolder(entry as FileSystemDirectoryEntry, entry.name)));
  }
  const [only] = entries;
  return { files, folder: entries.length === 1 && only?.isDirectory ? only.name : null };
}
