// An error with the word for it. The rule of the word stands in the head of the column, or under the table.
import { percent } from '../../present/verdict';
import { type ErrorKind, wordOf } from './errors';

export function ErrorText({ kind, error }: { kind: ErrorKind; error: number }) {
  const word = wordOf(kind, error);
  return (
    <>
      {percent(error)} <span class={`pill pill-${word}`}>{word}</span>
    </>
  );
}
