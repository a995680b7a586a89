/**
 * Stdout and stderr of the process, written at once from any thread: those that Node gives a worker pass through the main thread, and lose what
 * is under way when the process ends.
 */
import { fstatSync, statSync, writeSync } from 'node:fs';
import type { Asked } from './asked.js';

/** Widths of the terminals that stdout and stderr are. */
interface TerminalSizes {
  out: number | undefined;
  err: number | undefined;
}

/** Given to the command's thread. */
export interface ThreadData {
  columns: TerminalSizes;
  asked: Asked;
}

/** Milliseconds between tries where a pipe is full and does not block. */
const kPauseMs = 2;

/** Asks the file first: Node's module of terminals takes a tenth of the start. */
function isTerminal(descriptor: 1 | 2): boolean {
  try {
    const file = fstatSync(descriptor);
    if (!file.isCharacterDevice() || file.rdev === statSync('/dev/null').rdev) return false;
  } catch {} // of no file, as a closed one, or where there is no /dev/null
  return process.getBuiltinModule('node:tty').isatty(descriptor);
}

class Output {
  #isTTY: boolean | null = null;
  #columns: number | undefined;

  constructor(readonly descriptor: 1 | 2) {}

  get isTTY(): boolean {
    this.#isTTY ??= isTerminal(this.descriptor);
    return this.#isTTY;
  }

  /** Of the terminal, if it is one and tells. */
  get columns(): number | undefined {
    if (this.isTTY) this.#columns ??= (this.descriptor === 1 ? process.stdout : process.stderr).columns;
    return this.#columns;
  }
  set columns(known: number | undefined) {
    this.#columns = known;
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

export const out = new Output(1);
export const err = new Output(2);

/** In a thread that cannot ask the terminals. */
export function useTerminal(columns: TerminalSizes): void {
  out.columns = columns.out;
  err.columns = columns.err;
}
