// What to do about an error whose message says only what was found.
import { textOf } from './code-text';

export function Advice({ code }: { code: string }) {
  const advice = textOf(code)?.advice ?? '';
  return advice === '' ? null : <p class="advice">{advice}</p>;
}
