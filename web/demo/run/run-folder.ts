// Browser storage (OPFS) of runs: wasmquant-runs/<id>/<file>. The page holds a lock named after the run, so that other
// tabs can tell files in use from leftovers of a closed or crashed page.
import type { Output } from './output';

const folderName = 'wasmquant-runs';
const lockName = (id: string) => `${folderName}/${id}`;

function hasStorage(): boolean {
  return navigator.storage?.getDirectory !== undefined && 'createWritable' in FileSystemFileHandle.prototype;
}

async function runsFolder(): Promise<FileSystemDirectoryHandle> {
  const storage = await navigator.storage.getDirectory();
  return await storage.getDirectoryHandle(folderName, { create: true });
}

/** Holds the lock until the function it resolves to is called. */
function hold(name: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, () => new Promise<void>((release) => resolve(release))).catch(reject);
  });
}

/** With the names of their folders. */
export async function filesIn(folder: FileSystemDirectoryHandle, path = ''): Promise<{ name: string; file: File }[]> {
  const files: { name: string; file: File }[] = [];
  for await (const entry of folder.values()) {
    const name = path + entry.name;
    if (entry.kind === 'file') files.push({ name, file: await (entry as FileSystemFileHandle).getFile() });
    else files.push(...(await filesIn(entry as FileSystemDirectoryHandle, `${name}/`)));
  }
  return files;
}

/** @param bytesNeeded checked against the browser's quota, so that a run does not fail at its end. */
export async function createRunFolder(bytesNeeded: number): Promise<Output<FileSystemDirectoryHandle>> {
  if (!hasStorage()) {
    throw new Error(
      'This browser gives the page no file storage. It needs https:// or localhost, a window that is not private, and a current Chrome, Edge, Firefox or Safari.',
    );
  }
  const { quota = Number.POSITIVE_INFINITY, usage = 0 } = await navigator.storage.estimate();
  if (bytesNeeded > quota - usage) throw new DOMException('browser storage', 'QuotaExceededError');
  const id = crypto.randomUUID();
  const release = await hold(lockName(id));
  const runs = await runsFolder();
  const handle = await runs.getDirectoryHandle(id, { create: true });
  const urls: string[] = [];
  return {
    handle,
    folder: null,
    async files() {
      const files = await filesIn(handle);
      files.sort((left, right) => right.file.size - left.file.size);
      return files.map(({ name, file }) => {
        const url = URL.createObjectURL(file);
        urls.push(url);
        return { name, bytes: file.size, url };
      });
    },
    async remove() {
      for (const url of urls) URL.revokeObjectURL(url);
      await runs.removeEntry(id, { recursive: true });
      release();
    },
  };
}

/** Removes the runs of closed pages. */
export async function removeLeftovers(): Promise<void> {
  if (!hasStorage()) return;
  const runs = await runsFolder();
  const { held = [] } = await navigator.locks.query();
  const inUse = new Set(held.map((lock) => lock.name));
  const names: string[] = [];
  for await (const name of runs.keys()) names.push(name);
  for (const name of names) {
    if (!inUse.has(lockName(name))) await runs.removeEntry(name, { recursive: true });
  }
}
