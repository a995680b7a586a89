/** The result of a command; only execute.ts prints it. */
import type { Terminal } from './terminal.js';

export interface Outcome {
  /** What `--json` prints. */
  document: unknown;
  /** Lines for stdout otherwise, coloured and safe to print. */
  lines: string[];
  /** Lines for stderr otherwise, such as what a conversion lost. */
  remarks?: string[];
  /** Exit code 1 although the command succeeded, as when a checked config has errors. */
  failed?: boolean;
}

/** Passed to every command. */
export interface Context {
  terminal: Terminal;
  /** Fires on SIGINT and SIGTERM. */
  signal: AbortSignal;
}
