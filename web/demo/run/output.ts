// Where the files of one run are: browser storage (run-folder.ts) or a folder on disk (pick-folder.ts).
import type { Report } from 'wasmquant';

export interface OutputFile {
  name: string;
  bytes: number;
  /** Saves the file out of browser storage; null when it is on disk already. */
  url: string | null;
}

export interface Output {
  handle: FileSystemDirectoryHandle;
  /** Name of the folder on disk; null = browser storage. */
  folder: string | null;
  /** The files of a finished run. */
  files(report: Report): Promise<OutputFile[]>;
  /** Removes the files from browser storage. */
  remove(): Promise<void>;
}
