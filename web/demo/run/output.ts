// Where the files of one run are: browser storage (run-folder.ts), a folder (pick-folder.ts) or a file on disk
// (pick-file.ts).
import type { Report } from 'wasmquant';

export interface OutputFile {
  name: string;
  bytes: number;
  /** Saves the file out of browser storage; null when it is on disk already. */
  url: string | null;
}

export type Place = FileSystemDirectoryHandle | FileSystemFileHandle;

export interface Output<Handle extends Place = Place> {
  handle: Handle;
  /** Name of the folder or file on disk; null = browser storage. */
  folder: string | null;
  /** The files of a finished run. */
  files(report: Report): Promise<OutputFile[]>;
  /** Removes the files from browser storage, and a file on disk that stayed empty. */
  remove(): Promise<void>;
}
