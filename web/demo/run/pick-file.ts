// A user-chosen file on disk, for single-file outputs.
import type { Output } from './output';

// Not in TypeScript's DOM library: only some browsers have it (File System Access, wicg.github.io/file-system-access).
declare global {
  interface Window {
    showSaveFilePicker?(options?: { id?: string; suggestedName?: string }): Promise<FileSystemFileHandle>;
  }
  interface FileSystemFileHandle {
    remove?(): Promise<void>;
  }
}

/** Null if the user cancels. Must be called from a click, before any await. */
export async function pick(suggestedName: string): Promise<FileSystemFileHandle | null> {
  try {
    return (await window.showSaveFilePicker?.({ id: 'wasmquant', suggestedName })) ?? null;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    throw error;
  }
}

/** The same as the output of a run. Existing content stays until the run is done. */
export async function pickFile(suggestedName: string): Promise<Output | null> {
  const handle = await pick(suggestedName);
  if (!handle) return null;
  return {
    handle,
    folder: handle.name,
    files: async (report) => report.files.map(({ bytes }) => ({ name: handle.name, bytes, url: null })),
    async remove() {
      // The picker creates the file; an unfinished run leaves it empty. A non-empty one is the user's.
      const isEmpty = await handle.getFile().then(
        (file) => file.size === 0,
        () => false,
      );
      if (isEmpty) await handle.remove?.();
    },
  };
}
