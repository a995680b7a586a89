// A user-chosen folder on disk.
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
 * An empty folder, or null if the user cancels. Others are rejected, so that no run can replace a model, least of all its
 * own input. Must be called from a click, before any await.
 */
export async function pickFolder(): Promise<Output | null> {
  const handle = await show();
  if (!handle) return null;
  for await (const name of handle.keys()) {
    // Desktops add files such as .DS_Store to folders that look empty.
    if (!name.startsWith('.')) {
      throw new Error(`The folder ${handle.name} contains ${name}. Choose an empty or new one; nothing was changed.`);
    }
  }
  return {
    handle,
    folder: handle.name,
    files: async (report) => report.files.map(({ name, bytes }) => ({ name, bytes, url: null })),
    // Files on disk are the user's; the library removes what an unfinished run wrote.
    remove: async () => {},
  };
}
