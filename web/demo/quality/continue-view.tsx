// A short continuation of a prompt by the original model and by runs, side by side.
import type { Model } from 'wasmquant';
import { runnableRun } from '../inspect/kept-model';
import { opened } from '../open/opened';
import { type FinishedRun, runs } from '../run/runs';
import { type Continuation, commonTokens, continued, goOn, mostTokens, prompt } from './continuations';
import { isBusy } from './job';
import { samplePrompt } from './texts';

const endings = {
  count: `${mostTokens} tokens`,
  end: 'ended by the model',
  length: 'stopped at the maximum length of the model',
};

function facts({ tokens, stopped }: Continuation, before: Continuation | null): string {
  if (!before) return endings[stopped];
  const common = commonTokens(before.tokens, tokens);
  if (common === tokens.length && common === before.tokens.length) return 'every token as before';
  return `the first ${common} of ${before.tokens.length} tokens as before`;
}

function Text({ title, found, before }: { title: string; found: Continuation; before: Continuation | null }) {
  return (
    <figure class="continuation" aria-label={title}>
      <figcaption>
        {title} <span class="fine">{facts(found, before)}</span>
      </figcaption>
      <blockquote>
        <span class="continuation-prompt">{found.prompt}</span>
        {found.text}
      </blockquote>
    </figure>
  );
}

function Results({ model, list }: { model: Model; list: FinishedRun[] }) {
  const before = continued(model, null);
  if (!before) return null;
  return (
    <div class="continuations">
      <Text title="As opened" found={before} before={null} />
      {list.map((done) => {
        const found = continued(model, done.number);
        const title = `Run ${done.number}, ${done.configTitle}`;
        return found && <Text key={done.number} title={title} found={found} before={before} />;
      })}
    </div>
  );
}

export function ContinueView() {
  const model = opened.value?.model;
  if (!model) return null;
  const run = runnableRun(model);
  return (
    <form
      class="quality-part"
      onSubmit={(event) => {
        event.preventDefault();
        void goOn(model, run);
      }}
    >
      <h3>What it writes</h3>
      <p class="fine" id="prompt-note">
        Decodes {mostTokens} tokens greedily without a KV cache, to spot-check quality; large models take a while.
      </p>
      <div class="field">
        <label for="prompt">Beginning of a text</label>
        <input
          id="prompt"
          type="text"
          autocomplete="off"
          spellcheck={false}
          placeholder={opened.value?.isSample ? samplePrompt : 'Once upon a time'}
          aria-describedby="prompt-note"
          value={prompt.value}
          disabled={isBusy.value}
          onInput={(event) => {
            prompt.value = event.currentTarget.value;
          }}
        />
      </div>
      <Results model={model} list={runs.value.filter((done) => done.model === model)} />
      <div class="actions">
        <button type="submit" class="button" disabled={isBusy.value || prompt.value.trim() === ''}>
          {run ? `Let the model and run ${run.number} write` : 'Let the model write'}
        </button>
      </div>
    </form>
  );
}
