// How to load the files, and the same run again.
import { useSignal } from '@preact/signals';
import { Code } from '../export/code';
import { snippetOf } from '../export/run-snippet';
import { commandLine, javaScript } from '../export/snippets';
import type { FinishedRun } from '../run/runs';
import { useTexts } from './use-lines';

export function UseIt({ done }: { done: FinishedRun }) {
  const chosen = useSignal(0);
  const snippet = snippetOf(done);
  const texts = [
    ...useTexts(done).map(({ title, lines }) => ({ title, text: lines.join('\n') })),
    { title: 'run it again: command line', text: commandLine(snippet) },
    { title: 'JavaScript', text: javaScript(snippet) },
  ];
  const shown = texts[chosen.value] ?? texts[0];
  return (
    <section class="card" aria-labelledby="use-it">
      <h2 id="use-it" class="over">
        Use it
      </h2>
      <p class="use-choice">
        {texts.map(({ title }, i) => (
          <button
            key={title}
            type="button"
            class="plain"
            aria-pressed={shown?.title === title}
            onClick={() => {
              chosen.value = i;
            }}
          >
            {title}
          </button>
        ))}
      </p>
      {shown && <Code title={`How to use it: ${shown.title}`} text={shown.text} />}
    </section>
  );
}
