// Messages between the pool and its workers. Plain data and small, except output pieces, whose buffers are transferred.
//   pool → worker                        worker → pool
//   start    compiled module             ready      or failed
//   context  files and tasks of a run
//   job      tile ranges, or sequences   done | failed | crashed, one each; before that progress, with stored blocks
//   bytes    answer to read              read       a range of a file that only the main thread can read
//   shared   what another member of      share      for the other members of the team that does the job
//            the team shares
//   release  end of a run                released   its files are closed

import type { PlainError } from '../api/errors.js';
import type { RemoteSource } from '../io/file_source.js';
import type { Job, JobResult, WorkProgress } from './jobs.js';

export interface ContextFiles {
  /** The model to quantize, or reference and quantized model. */
  inputs: RemoteSource[][];
  /** Paths that a worker writes itself; null: output is sent back. */
  outputs: (OutputPath | null)[];
  /** Packed tasks; jobs refer to them by list and index. Empty if they come with the jobs. */
  work: Uint8Array[];
}
export interface OutputPath {
  name: string;
  path: string;
}

export type ToWorker =
  | { type: 'start'; module: WebAssembly.Module }
  | { type: 'context'; context: number; files: ContextFiles }
  /** `work`: packed tasks that replace those of the last job, by their number. */
  | {
      type: 'job';
      id: number;
      context: number;
      job: Job;
      work: [number: number, packed: Uint8Array][];
      /** Of the job's team. */
      member: number;
    }
  | { type: 'shared'; member: number; bytes: Uint8Array[] }
  | { type: 'bytes'; request: number; bytes: Uint8Array }
  | { type: 'bytes-failed'; request: number; error: PlainError }
  | { type: 'release'; context: number };

export type FromWorker =
  | { type: 'ready' }
  /** `memoryBytes`, here and below: the engine's. */
  | { type: 'done'; id: number; result: JobResult; memoryBytes: number }
  | { type: 'failed'; id: number; error: PlainError }
  /** Goes to every other member. */
  | { type: 'share'; member: number; bytes: Uint8Array<ArrayBuffer>[] }
  | { type: 'progress'; id: number; progress: WorkProgress; memoryBytes: number }
  /** The engine trapped or could not start: the worker is unusable. */
  | { type: 'crashed'; message: string }
  | { type: 'read'; request: number; context: number; input: number; file: number; offset: number; length: number }
  | { type: 'released'; context: number };

/** The pool's end of a worker. */
export interface Port {
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /** Call once, before the first message. `died`: the worker is gone or failed outside of any job. */
  listen(message: (message: FromWorker) => void, died: (reason: string) => void): void;
  /** Resolves when the worker has ended and its files are closed. */
  terminate(): Promise<void>;
  /** Whether the worker keeps the process alive. */
  hold(alive: boolean): void;
}
