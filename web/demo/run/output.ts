// Where the files of a run are: browser storage (run-folder.ts), a folder (pick-folder.ts) or a file on disk
// (pick-file.ts).
import type { RunReport } from 'wasmquant';

export interface OutputFile {
  name: string;
  bytes: number;
  /** URL that saves the file from browser storage; null if it is already on disk. */
  url: string | null;
}

export type Place = FileSystemDirectoryHandle | FileSystemFileHandle;

export interface Output<Handle extends Place = Place> {
  handle: Handle;
  /** Name of the folder or file on disk; null = browser storage. */
  folder: string | null;
  /** The files of a finished run. */
  files(report: RunReport): Promise<OutputFile[]>;
  /** Removes the files from browser storage, and a file on disk that is still empty. */
  remove(): Promise<void>;
}
