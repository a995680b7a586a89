// The one button, where its files go, and what there is to know before the run.
import { useEffect, useRef } from 'preact/hooks';
import type { Plan } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { shownLeft } from '../../present/coverage';
import { isOfSize, otherDiagnostics } from '../../present/output_size';
import { sentenceOf } from '../../present/sentence';
import { bytesText } from '../../present/units';
import { Remarks } from '../app/diagnostics';
import { FailureMessage } from '../app/failure';
import { choice, chosenConfig, needsText, planned } from '../configure/choice';
import { chooseScheme } from '../configure/reach';
import { sizeOf } from '../configure/sizes';
import { needsActivations } from '../configure/static-inputs';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';
import { job } from '../quality/job';
import { texts } from '../quality/texts';
import { canWriteFolder, chosenDestination, type Destination, destination, isSingleFile } from './destination';
import { RunProgress } from './run-progress';
import { run } from './runs';
import { startRun } from './start-run';

function DestinationChoice() {
  const option = (value: Destination, title: string) => (
    <label>
      <input
        type="radio"
        name="destination"
        value={value}
        checked={destination.value === value}
        onChange={() => {
          chosenDestination.value = value;
        }}
      />{' '}
      {title}
    </label>
  );
  return (
    <fieldset class="destination">
      <legend class="visually-hidden">Save</legend>
      {option('download', 'As downloads, after the run')}
      {option('folder', isSingleFile.value ? 'Straight into a file' : 'Straight into a folder')}
    </fieldset>
  );
}

/** A result that is larger than the model, and the scheme that the plan names in its place. */
function Larger({ plan }: { plan: Plan }) {
  const larger = plan.diagnostics.find(isOfSize);
  const model = opened.value?.model;
  if (!larger || !model) return null;
  const [, instead] = /^use (\w+), which/.exec(larger.hint ?? '') ?? [];
  const sentence = larger.message.replace(/^t/, 'T');
  return (
    <div class="message message-warning headline" role="status">
      <p>
        {sentence}
        {larger.hint && `; ${larger.hint}`}
      </p>
      {instead && (
        <button type="button" class="button" onClick={() => chooseScheme(instead, model)}>
          Take {instead}
        </button>
      )}
    </div>
  );
}

/** From here on the rest of a result is said to be most of it. */
const mostlyLeft = 0.5;

/** A result that is mostly what the scheme leaves, such as embeddings, where GGUF makes less of it. */
function MostlyLeft({ plan }: { plan: Plan }) {
  const model = opened.value?.model;
  const { coverage, bytesAfter } = plan.totals;
  const left = coverage.bytes - coverage.quantizedBytes;
  const gguf = sizeOf('q4_k_m', 'gguf')?.totals?.bytesAfter;
  if (!model || plan.format === 'gguf' || left < mostlyLeft * bytesAfter || !gguf || gguf > 0.8 * bytesAfter)
    return null;
  return (
    <p class="fine">
      {bytesText(left)} of {bytesText(bytesAfter)} stay as they are: {shownLeft(coverage.left).shown[0]?.text ?? ''}. As
      GGUF, which quantizes more of it, q4_k_m makes {bytesText(gguf)}.{' '}
      <button type="button" class="link" onClick={() => chooseScheme('q4_k_m', model)}>
        Take q4_k_m
      </button>
    </p>
  );
}

/** What keeps a run from being started, in a sentence; null: nothing. */
function missingText(): string | null {
  const { plan, failure } = planned.value;
  const model = opened.value?.model;
  const config = chosenConfig.value;
  if (!model) return 'Open a model first.';
  if (!plan) return failure ? 'This config does not fit the model yet.' : 'Planning…';
  const wrong = plan.diagnostics.find(({ severity }) => severity === 'error');
  if (wrong) return `${sentenceOf(wrong.where, wrong.message)} ${wrong.hint ? sentenceOf(null, wrong.hint) : ''}`;
  const { hasGraph } = formats.inputs[model.format];
  return hasGraph && config && needsActivations(config) && !feeds()
    ? 'The static inputs of this config need feeds: see “Calibrate and measure” below.'
    : null;
}

function Ready({ label }: { label: string }) {
  const button = useRef<HTMLButtonElement>(null);
  const { plan } = planned.value;
  const config = chosenConfig.value;
  const missing = missingText();
  // After a cancel the focused button is gone.
  useEffect(() => {
    if (document.activeElement === document.body && run.value.state !== 'idle')
      button.current?.focus({ preventScroll: true });
  }, []);
  const isText = config !== null && needsText(config);
  const isCopy = plan?.tensors.every(({ action }) => action === 'copy') === true;
  return (
    <div class="run-line">
      <button
        ref={button}
        type="button"
        class="button button-primary button-large"
        disabled={missing !== null || job.value !== null}
        aria-describedby="run-note"
        onClick={() => void startRun()}
      >
        {label}
        {plan && ` to ${bytesText(plan.totals.bytesAfter)}`}
      </button>
      <div>
        {canWriteFolder && <DestinationChoice />}
        <p class="fine" id="run-note">
          {missing ??
            (isCopy
              ? 'Nothing is left to quantize: every tensor is already stored like this, and a run only copies them.'
              : isText
                ? `Calibrates with ${texts.calibrate.value.trim() === '' ? 'the built-in text, English prose' : 'your text'}: see “Calibrate and measure” below.`
                : !canWriteFolder && 'Saved as a download, after the run.')}
        </p>
      </div>
    </div>
  );
}

/** `label`: what the button is called. */
export function RunLine({ label = 'Quantize' }: { label?: string }) {
  const current = run.value;
  const { plan } = planned.value;
  return (
    <section class="run" aria-label="Run" data-choice={`${choice.value.preset} ${choice.value.format}`}>
      {plan && <Larger plan={plan} />}
      {plan && <MostlyLeft plan={plan} />}
      {current.state === 'cancelled' && <p class="message">Cancelled. Nothing was saved.</p>}
      {current.state === 'failed' && <FailureMessage failure={current.failure} />}
      {current.state === 'running' ? <RunProgress {...current} /> : <Ready label={label} />}
      {plan && <Remarks items={otherDiagnostics(plan.diagnostics)} isOpen={choice.value.configText !== null} />}
    </section>
  );
}
