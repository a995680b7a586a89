// The same prompt, continued by the original and by the result, side by side; the first word that differs is marked.
import { useEffect, useRef } from 'preact/hooks';
import { elementCount } from '../../present/units';
import { curve } from '../curve/state';
import { isImproving } from '../improve/better';
import { runnableRun } from '../inspect/kept-model';
import { opened } from '../open/opened';
import { type Continuation, continued, goOn, prompt, usualPrompt } from '../quality/continuations';
import { isBusy } from '../quality/job';
import { JobProgress } from '../quality/job-progress';
import type { FinishedRun } from '../run/runs';
import { firstDifference } from './words';

const endings = {
  count: '',
  end: 'ended by the model',
  length: 'stopped at the maximum length of the model',
};

function Text({ title, found, mark, kind }: { title: string; found: Continuation | null; mark: number; kind: string }) {
  if (!found) return <figure class="continuation" aria-label={title} />;
  const words = found.text.split(/(?<=\s)(?=\S)/);
  return (
    <figure class="continuation" aria-label={title}>
      <figcaption class="fine">
        {title} {endings[found.stopped]}
      </figcaption>
      <blockquote>
        <span class="continuation-prompt">{found.prompt}</span>
        {mark < 0 || mark >= words.length ? (
          found.text
        ) : (
          <>
            {words.slice(0, mark).join('')}
            <mark class={kind}>{words[mark]?.trimEnd()}</mark>
            {words[mark]?.slice(words[mark].trimEnd().length)}
            {words.slice(mark + 1).join('')}
          </>
        )}
      </blockquote>
    </figure>
  );
}

/** Models up to this size write without being asked to: it takes seconds. */
const unaskedParameters = 60e6;

/** The usual prompt, once for each run of a language model. */
function useFirstText(done: FinishedRun): void {
  const waits = isBusy.value || isImproving.value;
  const tried = useRef<number | null>(null);
  useEffect(() => {
    if (waits || tried.current === done.number) return;
    const { model } = done;
    const parameters = model.tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    const writes = curve.peek()?.model === model && curve.peek()?.metric.kind === 'bits-per-byte';
    const run = runnableRun(model);
    if (!writes || parameters > unaskedParameters || !run || continued(model, done.number)) return;
    // After the result is drawn.
    const timer = setTimeout(() => {
      tried.current = done.number;
      void goOn(model, run);
    }, 300);
    return () => clearTimeout(timer);
  }, [done.number, waits]);
}

export function BeforeAfter({ done }: { done: FinishedRun }) {
  useFirstText(done);
  const model = opened.value?.model;
  if (!model) return null;
  const run = runnableRun(model);
  const [before, after] = [continued(model, null), continued(model, done.number)];
  const differs = before && after ? firstDifference(before.text, after.text) : -1;
  return (
    <section class="card" aria-labelledby="before-after">
      <h2 id="before-after" class="over">
        Before and after <span>same prompt, greedy</span>
      </h2>
      {(before || after) && (
        <div class="continuations">
          <Text title="As opened" found={before} mark={differs} kind="mark-before" />
          <Text title={done.configTitle} found={after} mark={differs} kind="mark-after" />
        </div>
      )}
      {before && after && (
        <p class="fine" role="status">
          {differs < 0 ? 'Every word is the same.' : `First difference: word ${differs + 1}.`}
        </p>
      )}
      <form
        class="prompt-form"
        onSubmit={(event) => {
          event.preventDefault();
          void goOn(model, run);
        }}
      >
        <input
          type="text"
          aria-label="Beginning of a text"
          autocomplete="off"
          spellcheck={false}
          placeholder={usualPrompt()}
          value={prompt.value}
          disabled={isBusy.value}
          onInput={(event) => {
            prompt.value = event.currentTarget.value;
          }}
        />
        <button type="submit" class="button" disabled={isBusy.value || run === null}>
          Let both write
        </button>
      </form>
      <JobProgress title="Writing" />
    </section>
  );
}
