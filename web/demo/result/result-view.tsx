// After a run: what came of it in a sentence, Save, how to use it, before and after, and where the error is.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formats } from 'wasmquant/internal';
import { otherDiagnostics } from '../../present/output_size';
import { Remarks } from '../app/diagnostics';
import { lastRun, showStage } from '../app/stage';
import { Views } from '../app/views';
import { Conflict, CustomNote } from '../choose/custom-note';
import { choice, isSameChoice } from '../configure/choice';
import { curve } from '../curve/state';
import { isImproving, makeBetter, whyNotBetter } from '../improve/better';
import { runnableRun } from '../inspect/kept-model';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { JobProgress } from '../quality/job-progress';
import { measure } from '../quality/measurements';
import { isSample } from '../quality/texts';
import { RunLine } from '../run/run-line';
import type { FinishedRun } from '../run/runs';
import { SaveButton, SavedFiles } from '../run/saved-files';
import { TryView, usePlace } from '../try/try-view';
import { BeforeAfter } from './before-after';
import { ErrorMap } from './error-map';
import { canCompareOutputs, compareOutputs, outputErrors } from './outputs';
import { lossOf, sentenceOf } from './sentence';
import { UseIt } from './use-it';
import { WorstLayers } from './worst-layers';

/** Whether a run can be measured on text. */
const isLanguageModel = ({ model }: FinishedRun) => model.config !== null || model.format === 'gguf';

function Measuring({ done }: { done: FinishedRun }) {
  const hasGraph = formats.inputs[done.model.format].hasGraph;
  const isKept = done.files !== null;
  if (hasGraph)
    return canCompareOutputs(done) && !outputErrors.value.some(({ run }) => run === done.number) ? (
      <button type="button" class="button" disabled={isBusy.value} onClick={() => void compareOutputs(done)}>
        Compare outputs and speed
      </button>
    ) : null;
  const known = lossOf(done);
  if (!isLanguageModel(done) || !isKept || known?.kind === 'bits-per-byte') return null;
  return (
    <button
      type="button"
      class="button"
      disabled={isBusy.value || runnableRun(done.model) === null}
      onClick={() => void measure(done.model, runnableRun(done.model))}
    >
      Measure the loss
    </button>
  );
}

/** The loss of the sample, and of models that the curve found to be language models, is measured without being asked for. */
function useMeasurement(done: FinishedRun): void {
  const waits = isBusy.value || isImproving.value;
  const tried = useRef<number | null>(null);
  useEffect(() => {
    const run = runnableRun(done.model);
    const isKnown =
      (isSample() && done.model === opened.peek()?.model) ||
      (curve.peek()?.model === done.model && curve.peek()?.metric.kind === 'bits-per-byte');
    if (waits || tried.current === done.number || !isKnown || !run || lossOf(done)) return;
    const timer = setTimeout(() => {
      tried.current = done.number;
      void measure(done.model, run);
    }, 100);
    return () => clearTimeout(timer);
  }, [done.number, waits]);
}

function Headline({ done }: { done: FinishedRun }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { headline, details, verdict } = sentenceOf(done);
  useMeasurement(done);
  // The button that began the run is gone.
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [done.number]);
  return (
    <section class="card result-head" aria-label="Result">
      <div class="result-sentence">
        <h1 ref={heading} tabIndex={-1} class={verdict === 'bad' ? 'headline-bad' : ''}>
          {headline.split(/(\S+ %)/).map((part, i) => (i % 2 ? <span class="unbroken">{part}</span> : part))}
        </h1>
        <p class="fine" role="status">
          {details.join(' · ')}
        </p>
        <SavedFiles done={done} />
      </div>
      <div class="result-actions">
        <button type="button" class="button" onClick={() => showStage('choose')}>
          Try another size
        </button>
        <Measuring done={done} />
        {whyNotBetter.value === null && isSameChoice(choice.value, done.choice) && (
          <button type="button" class="button" disabled={isBusy.value} onClick={() => void makeBetter()}>
            Make it better
          </button>
        )}
        <SaveButton done={done} />
      </div>
    </section>
  );
}

/** Jobs that are shown where they were begun. */
const ownPlaces = ['Writing', 'Trying it'];

export function ResultView() {
  const done = lastRun.value;
  return done && <Result done={done} />;
}

function Result({ done }: { done: FinishedRun }) {
  const hasGraph = formats.inputs[done.model.format].hasGraph;
  // In a task of their own: the table of a large model takes as long as all above it.
  const hasViews = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      hasViews.value = true;
    });
    return () => clearTimeout(timer);
  }, []);
  const place = usePlace(done, hasGraph);
  const isOther =
    !isSameChoice(choice.value, done.choice) &&
    choice.value.format === done.choice.format &&
    choice.value.configText !== null;
  return (
    <>
      <div class="result">
        <Headline key={done.number} done={done} />
        <JobProgress except={ownPlaces} />
        <Remarks items={otherDiagnostics(done.report.diagnostics)} />
        {isOther && (
          <section class="card">
            <CustomNote />
            <Conflict />
            <RunLine label="Quantize again" />
          </section>
        )}
        <div class={place || (!hasGraph && isLanguageModel(done)) ? 'result-two' : 'result-one'}>
          <UseIt done={done} />
          {place && <TryView done={done} place={place} />}
          {!hasGraph && isLanguageModel(done) && <BeforeAfter done={done} />}
        </div>
        <div class="result-errors">
          <ErrorMap done={done} />
          <WorstLayers done={done} />
        </div>
      </div>
      {hasViews.value && <Views of="result" />}
    </>
  );
}
