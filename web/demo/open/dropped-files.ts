// Files from a drop, including folders.

function readEntries(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

function readFile(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** The files directly in a folder: a model is one folder; subfolders (onnx, original) are other models. */
async function filesOfFolder(folder: FileSystemDirectoryEntry): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  // A reader returns batches; an empty batch is the end.
  for (let batch = await readEntries(reader); batch.length > 0; batch = await readEntries(reader)) {
    for (const entry of batch) if (entry.isFile) files.push(await readFile(entry as FileSystemFileEntry));
  }
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
