// A file on disk that the user names: for outputs that are one file.
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

/** Null when the user picks none. Must be called by a click before anything is awaited. */
export async function pick(suggestedName: string): Promise<FileSystemFileHandle | null> {
  try {
    return (await window.showSaveFilePicker?.({ id: 'wasmquant', suggestedName })) ?? null;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    throw error;
  }
}

/** The same as the place of a run. What stood in the file stays until the run is done. */
export async function pickFile(suggestedName: string): Promise<Output | null> {
  const handle = await pick(suggestedName);
  if (!handle) return null;
  return {
    handle,
    folder: handle.name,
    files: async (report) => report.files.map(({ bytes }) => ({ name: handle.name, bytes, url: null })),
    async remove() {
      // The picker makes the file; a run that did not end leaves it empty. A full one is the user's.
      const isEmpty = await handle.getFile().then(
        (file) => file.size === 0,
        () => false,
      );
      if (isEmpty) await handle.remove?.();
    },
  };
}
