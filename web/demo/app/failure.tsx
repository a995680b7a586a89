// Errors for people: a headline, what happened, where, and every diagnostic.
import { type Diagnostic, QuantizationError } from 'wasmquant';
import { saysWhatToDo, sentenceOf } from '../../present/sentence';
import { Advice } from './advice';
import { Diagnostics } from './diagnostics';

export interface Failure {
  title: string;
  message: string;
  /** Kebab-case code, for searching and for reports. */
  code: string | null;
  /** Tensor name, byte offset or JSON pointer. */
  where: string | null;
  diagnostics: Diagnostic[];
}

/** Explanations of browsers' own errors. */
const domErrors: Record<string, string> = {
  QuotaExceededError: 'The browser has no room left for the output. Free some space, or write into a folder instead.',
  NotReadableError: 'The file could not be read. It may have changed, moved or be in use; open it again.',
  NotFoundError: 'The file is not there any more. Open it again.',
  NotAllowedError: 'The browser did not allow it. Start again and allow access when asked.',
  NoModificationAllowedError: 'The file is in use by another tab or program.',
};

export function explain(error: unknown, title: string): Failure {
  const failure: Failure = { title, message: String(error), code: null, where: null, diagnostics: [] };
  if (error instanceof QuantizationError) {
    const { code, detail, where = null, diagnostics = [] } = error;
    return { ...failure, code, message: detail, where, diagnostics };
  }
  if (error instanceof DOMException) {
    return { ...failure, code: error.name, message: domErrors[error.name] ?? error.message };
  }
  if (error instanceof Error) return { ...failure, message: error.message };
  return failure;
}

export function FailureMessage({ failure }: { failure: Failure }) {
  return (
    <div class="message message-error" role="alert">
      <strong>{failure.title}</strong>
      <p>{sentenceOf(failure.where, failure.message)}</p>
      {failure.code && !saysWhatToDo(failure.message) && <Advice code={failure.code} />}
      {(failure.code || failure.where) && (
        <p class="fine">
          {failure.code && <code>{failure.code}</code>}
          {failure.where && (
            <>
              {' at '}
              <code>{failure.where}</code>
            </>
          )}
        </p>
      )}
      <Diagnostics items={failure.diagnostics} />
    </div>
  );
}
