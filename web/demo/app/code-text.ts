// What codes of diagnostics mean, fetched with the first one: few visits meet any.
import { signal } from '@preact/signals';
import type { codeTexts } from '../../present/generated/code_texts';

type Texts = typeof codeTexts;

const texts = signal<Texts | null>(null);
let isAsked = false;

/** Undefined until the texts are there; a component that asks is drawn again then. */
export function textOf(code: string): Texts[string] | undefined {
  if (!isAsked) {
    isAsked = true;
    void import('../../present/generated/code_texts').then((loaded) => {
      texts.value = loaded.codeTexts;
    });
  }
  return texts.value?.[code];
}
