/**
 * Stdout and stderr of the process, written at once from any thread: those that Node gives a worker pass through the main thread, and lose what
 * is under way when the process ends.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { workerData } from 'node:worker_threads';

/** Given to the command's thread, which cannot ask the terminal. */
export interface TerminalSizes {
  columns: { out: number | undefined; err: number | undefined };
}

const known = workerData as TerminalSizes | null;

/** Milliseconds between tries where a pipe is full and does not block. */
const kPauseMs = 2;

class Output {
  readonly isTTY: boolean;
  readonly columns: number | undefined;

  constructor(
    readonly descriptor: 1 | 2,
    columns: number | undefined,
  ) {
    this.isTTY = isatty(descriptor);
    this.columns = columns;
  }

  /** Errors: of the system, such as ENOSPC. A closed pipe (`wasmquant inspect … | head`) ends the command and is no failure. */
  write(text: string): boolean {
    let bytes = Buffer.from(text);
    while (bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(this.descriptor, bytes));
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : '';
        if (code === 'EPIPE') process.exit();
        if (code !== 'EAGAIN') throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, kPauseMs);
      }
    }
    return true;
  }
}

export const out = new Output(1, known?.columns.out);
export const err = new Output(2, known?.columns.err);
