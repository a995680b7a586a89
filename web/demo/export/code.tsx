// Code to copy.
import { useSignal } from '@preact/signals';

export function Code({ title, text }: { title: string; text: string }) {
  const copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, 2000);
  };
  return (
    <div class="snippet">
      <button type="button" class="button button-small" aria-label={`Copy: ${title}`} onClick={() => void copy()}>
        {copied.value ? 'Copied' : 'Copy'}
      </button>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways must be reachable by keyboard */}
      <section class="snippet-text" tabIndex={0} aria-label={title}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
    </div>
  );
}
