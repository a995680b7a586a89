// What to do about an error whose message says only what was found.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export function Advice({ code }: { code: string }) {
  const text = useSignal('');
  useEffect(() => {
    // Few visits meet an error.
    void import('../../present/generated/code_texts').then(({ codeTexts }) => {
      text.value = codeTexts[code]?.advice ?? '';
    });
  }, [code]);
  return text.value === '' ? null : <p class="advice">{text.value}</p>;
}
