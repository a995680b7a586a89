// The only error class. Core codes are the rows of src/core/error.def; the library adds files, targets and workers.

import type { Diagnostic } from './diagnostic_types.js';

/** Codes that the core reports, in the order of src/core/error.def. */
export const coreErrorCodes = [
  'argument-invalid',
  'json-invalid',
  'config-invalid',
  'spec-invalid',
  'shape-mismatch',
  'group-size-invalid',
  'value-not-finite',
  'value-overflow',
  'format-unknown',
  'file-truncated',
  'file-invalid',
  'file-too-large',
  'tensor-missing',
  'tensor-duplicate',
  'dtype-unsupported',
  'format-unsupported',
  'nothing-quantized',
  'memory-budget',
  'not-implemented',
  'state-invalid',
] as const;

/** Codes that the library adds. */
export const libraryErrorCodes = [
  /** A source is missing, unreachable or not a model. */
  'source-invalid',
  /** The target cannot take the output: wrong kind, not writable, or it contains the input. */
  'target-invalid',
  /** The output exists and `overwrite` is not set. */
  'target-exists',
  /** Reading failed midway; `cause` is the host's error. */
  'read-failed',
  /** Writing failed midway (disk full, stream refused); `cause` is the host's error. */
  'write-failed',
  /** wasmquant.wasm could not be fetched, compiled or started. */
  'engine-unavailable',
  /** The WebAssembly code trapped in this thread, usually out of memory. */
  'engine-crashed',
  /** A worker died twice on the same job, or could not be started. */
  'worker-crashed',
] as const;

/** One of {@link coreErrorCodes}. */
export type CoreErrorCode = (typeof coreErrorCodes)[number];
/** One of {@link libraryErrorCodes}. */
export type LibraryErrorCode = (typeof libraryErrorCodes)[number];

/** A {@link QuantizationError} as plain data, for `postMessage`. */
export interface PlainError {
  /** As {@link QuantizationError.code}. */
  code: CoreErrorCode | LibraryErrorCode;
  /** As {@link QuantizationError.where}; absent or empty if there is no place. */
  where?: string | undefined;
  /** The sentence without `where`. */
  detail: string;
  /** Every problem, for `config-invalid`. */
  diagnostics?: Diagnostic[] | undefined;
  /** The underlying error, if any. */
  cause?: unknown;
}

/** Every failure except programming mistakes and aborts (which reject with `signal.reason`). */
export class QuantizationError extends Error {
  /** Kebab-case, stable: one of {@link coreErrorCodes} or {@link libraryErrorCodes}. */
  readonly code: CoreErrorCode | LibraryErrorCode;
  /** JSON pointer into the config, tensor name, file name or byte offset. */
  declare readonly where?: string;
  /** Every problem, for `config-invalid`. */
  declare readonly diagnostics?: Diagnostic[];
  /** What was found, what is allowed, what to do; `message` is `where` and this. */
  readonly detail: string;

  /** From plain data, such as a worker's message. */
  constructor(plain: PlainError) {
    super(
      plain.where ? `${plain.where}: ${plain.detail}` : plain.detail,
      plain.cause === undefined ? undefined : { cause: plain.cause },
    );
    this.name = 'QuantizationError';
    this.code = plain.code;
    this.detail = plain.detail;
    if (plain.where) this.where = plain.where;
    if (plain.diagnostics) this.diagnostics = plain.diagnostics;
  }

  /** The error as plain data, without `cause`, which may not be cloneable. */
  toPlain(): PlainError {
    return { code: this.code, where: this.where, detail: this.detail, diagnostics: this.diagnostics };
  }
}

export function failure(code: PlainError['code'], where: string, detail: string, cause?: unknown): QuantizationError {
  return new QuantizationError({ code, where, detail, cause });
}

/** The message of anything thrown. */
export function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return String(thrown.message);
  try {
    return String(thrown);
  } catch {
    return 'an object without text was thrown';
  }
}
