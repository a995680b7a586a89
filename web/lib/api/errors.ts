// The only error class. Its codes are the rows of src/core/codes/error.def: the core's, and those of files, targets and workers.

import { coreErrorCodes, libraryErrorCodes } from '../generated/codes.js';
import type { Diagnostic } from './diagnostic_types.js';

export { coreErrorCodes, libraryErrorCodes };

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

/**
 * Whether something thrown is a {@link QuantizationError}, and of this code if one is given; also of another copy of the library,
 * whose class is another one.
 */
export function isQuantizationError<Code extends PlainError['code'] = PlainError['code']>(
  thrown: unknown,
  code?: Code,
): thrown is QuantizationError & {
  /** The code that was asked for. */
  readonly code: Code;
} {
  if (!(thrown instanceof Error) || thrown.name !== 'QuantizationError') return false;
  return code === undefined || (thrown as QuantizationError).code === code;
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
