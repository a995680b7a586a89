/** What a command hands back; the one place that prints it is main.ts. */
import type { Terminal } from './terminal.js';

export interface Outcome {
  /** What `--json` prints. */
  document: unknown;
  /** Lines for stdout otherwise. Colours are in; names are printable already. */
  lines: string[];
  /** Lines for stderr otherwise, such as what a conversion lost. */
  remarks?: string[];
  /** Exit code 1 although the command itself went well, as when a checked config has errors. */
  failed?: boolean;
}

/** What every command gets. */
export interface Context {
  terminal: Terminal;
  /** Fires on SIGINT and SIGTERM. */
  signal: AbortSignal;
}

/** Runs a command and prints its outcome or its failure. */
export type Run = (options: object, body: (context: Context) => Promise<Outcome>) => Promise<void>;
