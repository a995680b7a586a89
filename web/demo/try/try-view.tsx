// A picture or sound of the user's through both models, which stays in this tab.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { plural } from '../../present/units';
import { ruleText } from '../../present/verdict';
import { requiredInputs } from '../feeds/feeds';
import { useFieldDrop } from '../open/field-drop';
import { isBusy } from '../quality/job';
import { JobProgress } from '../quality/job-progress';
import type { FinishedRun } from '../run/runs';
import { OutputView } from './output-view';
import { range, tried, tryFile } from './tried';
import { type Place, placeOf, type RangeName, ranges } from './try-input';

const outputsShown = 4;

/** Null until it is known, and for models that take neither. */
export function usePlace({ model }: FinishedRun, isWanted: boolean): Place | null {
  const place = useSignal<Place | null>(null);
  useEffect(() => {
    let isCurrent = isWanted;
    place.value = null;
    if (isWanted)
      requiredInputs(model).then(
        (inputs) => {
          if (isCurrent) place.value = placeOf(inputs);
        },
        () => {}, // the feeds' panel says why
      );
    return () => {
      isCurrent = false;
    };
  }, [model, isWanted]);
  return place.value;
}

export function TryView({ done, place }: { done: FinishedRun; place: Place }) {
  const { kind } = place;
  const canRun = done.files !== null && !isBusy.value;
  const { isOver, handlers } = useFieldDrop(([file]) => {
    if (file && canRun) void tryFile(done, place, file);
  });
  const found = tried.value?.run === done.number ? tried.value : null;
  const hidden = (found?.outputs.length ?? 0) - outputsShown;
  return (
    <section class={`card ${isOver ? 'drop-zone-over' : ''}`} aria-labelledby="try" {...handlers}>
      <h2 id="try" class="over">
        A {kind} of yours <span>through both models</span>
      </h2>
      <div class="actions">
        <span class="file-button">
          <input
            id="try-file"
            type="file"
            accept={kind === 'picture' ? 'image/*' : 'audio/*'}
            disabled={!canRun}
            onChange={(event) => {
              const [file] = event.currentTarget.files ?? [];
              event.currentTarget.value = '';
              if (file) void tryFile(done, place, file);
            }}
          />
          <label for="try-file" class="button">
            Choose a {kind}
          </label>
        </span>
        {kind === 'picture' && place.input.type === 'float32' && (
          <label class="fine">
            Values{' '}
            <select
              value={range.value}
              disabled={isBusy.value}
              onChange={(event) => {
                range.value = event.currentTarget.value as RangeName;
              }}
            >
              {Object.entries(ranges).map(([name, { title }]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {found ? (
        <>
          <p class="fine" role="status">
            {found.file}. {ruleText('output-error')}.
          </p>
          {found.outputs.slice(0, outputsShown).map((output) => (
            <OutputView key={output.name} output={output} />
          ))}
          {hidden > 0 && <p class="fine">{plural(hidden, 'more output')}.</p>}
        </>
      ) : (
        <p class="fine">
          {kind === 'picture'
            ? 'It is resized to the size of the input. Choose the values that the model was trained with.'
            : 'It is converted to one channel at 16 kHz; states of the model start at zero.'}
        </p>
      )}
      <JobProgress title="Trying it" />
    </section>
  );
}
