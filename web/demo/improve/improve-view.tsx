// The layers with the largest errors, and alternatives for each: bytes against error, applied with a click.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { capital } from '../../present/sentence';
import { specText } from '../../present/spec_text';
import { bytesText } from '../../present/units';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { choice, chosenConfig, dialectOf, useConfig } from '../configure/choice';
import { isEditable } from '../configure/edit-layers';
import { canSelect } from '../configure/selection';
import { opened } from '../open/opened';
import { ErrorText } from '../report/error-cell';
import { relativeError, ruleOf } from '../report/errors';
import { type FinishedRun, run, runs } from '../run/runs';
import { isCalibrated } from './better';
import { findSuggestions, type Option, type Suggestion, suggestions } from './suggestions';

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${bytesText(Math.abs(value))}`;
}

const errorOf = ({ sqnrDb }: Option) => relativeError(sqnrDb) ?? 0;

/** What takes away most of the error for each byte that it adds. */
function bestOf(options: readonly Option[], now: number): Option | null {
  const worth = (option: Option) => (now - errorOf(option)) / Math.max(1, option.bytes);
  return options.reduce<Option | null>((best, option) => (!best || worth(option) > worth(best) ? option : best), null);
}

function OptionButton({ option, done, isBest }: { option: Option; done: FinishedRun; isBest: boolean }) {
  const { candidate } = option;
  const base = chosenConfig.value;
  // Edits apply on top of the current config, which may be edited already; configs in other dialects cannot be edited.
  const edited = base && JSON.stringify(candidate.edit(base));
  const isApplied = base !== null && edited === JSON.stringify(base);
  const error = errorOf(option);
  return (
    <button
      type="button"
      class={isBest ? 'button button-small' : 'link'}
      disabled={
        isApplied || !canSelect.value || run.value.state === 'running' || choice.value.format !== done.plan.format
      }
      onClick={() => {
        if (base) useConfig(candidate.edit(base));
      }}
    >
      {isApplied ? '✓ ' : ''}
      {candidate.title}: {signed(option.bytes)},{' '}
      {error === 0 ? 'unchanged' : <ErrorText kind="weight error" error={error} />}
    </button>
  );
}

function SuggestionRow({ suggestion: { tensor, options }, done }: { suggestion: Suggestion; done: FinishedRun }) {
  const now = relativeError(tensor.error?.sqnrDb) ?? 0;
  const best = bestOf(options, now);
  return (
    <li class="suggestion">
      <p>
        <code>{tensor.name}</code>{' '}
        <span class="fine">
          <ErrorText kind="weight error" error={now} />, {tensor.spec && specText(tensor.spec)}
        </span>
      </p>
      {options.length === 0 && <p class="fine">Nothing that this format holds is better.</p>}
      <ul class="offers">
        {options.map((option) => (
          <li key={option.candidate.title}>
            {/* The part of the error that is left. */}
            <span
              class="offer-bar"
              aria-hidden="true"
              style={{ '--share': `${Math.round((100 * errorOf(option)) / (now || 1))}%` }}
            />
            <OptionButton option={option} done={done} isBest={option === best} />
            {option === best && options.length > 1 && <span class="fine">most for its bytes</span>}
          </li>
        ))}
      </ul>
    </li>
  );
}

export function ImproveView() {
  const last = useComputed(() => runs.value.findLast(({ model }) => model === opened.value?.model) ?? null);
  const done = last.value;
  const failure = useSignal<Failure | null>(null);
  const calibrated = done !== null && isCalibrated(done);
  const editable = done !== null && !calibrated && isEditable(done.config, dialectOf(done.config));
  useEffect(() => {
    if (!done || !editable || (suggestions.value?.run === done.number && suggestions.value.isComplete)) return;
    const controller = new AbortController();
    failure.value = null;
    findSuggestions(done, controller.signal).catch((error: unknown) => {
      if (!controller.signal.aborted) failure.value = explain(error, 'No candidate could be tried');
    });
    return () => controller.abort();
  }, [done?.number, editable]);
  const found = suggestions.value?.run === done?.number ? suggestions.value : null;
  return (
    <section class="panel improve" aria-labelledby="improve">
      <h2 id="improve">Layers that lost most</h2>
      {!done && <p class="fine">Run once to see which layers lose most, and what would help them.</p>}
      {calibrated && (
        <p class="fine">
          This run is calibrated: the error of a layer is that of its output, and what plain rounding would make of it
          cannot be compared with it. The table of the worst layers above has the errors of the outputs.
        </p>
      )}
      {done && !calibrated && !editable && (
        <p class="fine">
          This config is not in Quark's words; convert it under “Edit the config” to change single layers.
        </p>
      )}
      {found && (
        <ul class="suggestions">
          {found.list.map((suggestion) => (
            <SuggestionRow key={suggestion.tensor.name} suggestion={suggestion} done={done!} />
          ))}
        </ul>
      )}
      {failure.value && <FailureMessage failure={failure.value} />}
      {found && !found.isComplete && !failure.value && <p class="fine">Trying what would help…</p>}
      {found?.isComplete && found.list.length === 0 && <p class="fine">No layer lost anything.</p>}
      {found?.isComplete && found.list.length > 0 && (
        <p class="fine">
          The bar is the part of the error that is left. Sizes are those of the whole output; errors were measured by
          quantizing the layer that way. {capital(ruleOf('weight error'))}. A click changes the config; run again to get
          the files: layers that did not change are kept.
        </p>
      )}
    </section>
  );
}
