/** Failures for the user: what, where, what to do. Stack traces only with WASMQUANT_DEBUG. */
import type { Diagnostic } from '../lib/node.js';
import { QuantizationError } from '../lib/node.js';
import { diagnosticLines } from './diagnostics.js';
import type { Colors } from './terminal.js';
import { printable } from './terminal.js';

export const kExitFailed = 1;
export const kExitUsage = 2;

/** A failure detected by the command line. */
export class CommandError extends Error {
  override name = 'CommandError';
  constructor(
    /** Kebab-case, like the library's codes. */
    readonly code: string,
    message: string,
    readonly details: { where?: string; hint?: string | undefined; exitCode?: number } = {},
  ) {
    super(message);
  }
}

/** Wrong use of the command line: exit code 2. */
export function usageError(message: string, hint?: string): CommandError {
  return new CommandError('usage', message, { hint, exitCode: kExitUsage });
}

/** What `--json` prints under `error`. */
export interface Failure {
  code: string;
  message: string;
  where?: string | undefined;
  hint?: string | undefined;
  diagnostics?: Diagnostic[] | undefined;
}

const kHints: Record<string, string> = {
  'config-invalid': 'wasmquant config check shows the same list without a model',
  'source-invalid': 'a model is a file, a folder, an index file, hf:ORG/MODEL or an http(s) URL',
  'memory-budget': '--memory sets it; fewer --threads need less',
  ENOSPC: 'the disk is full; nothing was changed',
};

/** Any thrown value as a failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CommandError) {
    const { where, hint } = error.details;
    return { code: error.code, message: error.message, where, hint };
  }
  if (error instanceof QuantizationError) {
    const { code, message, where, diagnostics } = error;
    return { code, message, where, hint: kHints[code], diagnostics };
  }
  if (error instanceof Error && 'syscall' in error && 'code' in error) {
    const code = String(error.code);
    return { code, message: error.message, hint: kHints[code] };
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return {
    code: 'internal',
    message,
    hint: 'this is a bug in wasmquant; WASMQUANT_DEBUG=1 shows where it happened',
  };
}

export function exitCodeOf(error: unknown): number {
  return error instanceof CommandError ? (error.details.exitCode ?? kExitFailed) : kExitFailed;
}

/** With WASMQUANT_DEBUG: the stack of a thrown value, as lines for stderr. */
export function debugLines(error: unknown): string[] {
  if (!process.env.WASMQUANT_DEBUG || !(error instanceof Error)) return [];
  return (error.stack ?? '').split('\n').map(printable);
}

/** Lines for stderr. */
export function failureLines(failure: Failure, colors: Colors): string[] {
  const code =
    failure.code === 'usage' || failure.message.startsWith(failure.code)
      ? ''
      : colors.dim(` (${printable(failure.code)})`);
  const lines = [`${colors.bold(colors.red('error:'))} ${printable(failure.message)}${code}`];
  if (failure.where && !failure.message.includes(failure.where))
    lines.push(`  ${colors.dim('at:')}   ${printable(failure.where)}`);
  if (failure.diagnostics?.length) lines.push('', ...diagnosticLines(failure.diagnostics, colors), '');
  if (failure.hint) lines.push(`  ${colors.dim('hint:')} ${printable(failure.hint)}`);
  return lines;
}
