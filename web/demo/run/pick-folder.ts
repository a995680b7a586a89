// A folder on disk that the user picks.
import type { Output } from './output';

// Not in TypeScript's DOM library: only some browsers have it (File System Access, wicg.github.io/file-system-access).
declare global {
  interface Window {
    showDirectoryPicker(options?: { id?: string; mode?: 'read' | 'readwrite' }): Promise<FileSystemDirectoryHandle>;
  }
}

async function show(): Promise<FileSystemDirectoryHandle | null> {
  try {
    return await window.showDirectoryPicker({ id: 'wasmquant', mode: 'readwrite' });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    throw error;
  }
}

/**
 * An empty folder, or null when the user picks none. Others are refused, so that no run can replace a model, least of
 * all the one it reads. Must be called by a click before anything is awaited.
 */
export async function pickFolder(): Promise<Output | null> {
  const handle = await show();
  if (!handle) return null;
  for await (const name of handle.keys()) {
    // Desktops put files such as .DS_Store into folders that people call empty.
    if (!name.startsWith('.')) {
      throw new Error(`The folder ${handle.name} has ${name} in it. Choose an empty or new one; nothing was changed.`);
    }
  }
  return {
    handle,
    folder: handle.name,
    files: async (report) => report.files.map(({ name, bytes }) => ({ name, bytes, url: null })),
    // What is on disk is the user's; the library takes back what an unfinished run wrote.
    remove: async () => {},
  };
}
