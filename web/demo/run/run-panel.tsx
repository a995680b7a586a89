import { useEffect, useRef } from 'preact/hooks';
import { formats } from 'wasmquant';
import { bytesText } from '../../present/units';
import { FailureMessage } from '../app/failure';
import { chosenConfig, needsText, planned } from '../configure/choice';
import { needsActivations } from '../configure/static-inputs';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';
import { job } from '../quality/job';
import { texts } from '../quality/texts';
import { canWriteFolder, chosenDestination, type Destination, destination, isSingleFile } from './destination';
import { RunProgress } from './run-progress';
import { run, shownReport } from './runs';
import { SavedFiles } from './saved-files';
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
      <legend>Save</legend>
      {option('download', 'As downloads, after the run')}
      {option('folder', isSingleFile.value ? 'Straight into a file' : 'Straight into a folder')}
    </fieldset>
  );
}

function Ready({ again }: { again: boolean }) {
  const button = useRef<HTMLButtonElement>(null);
  const { plan } = planned.value;
  const model = opened.value?.model;
  const hasGraph = model !== undefined && formats.inputs[model.format].hasGraph;
  const config = chosenConfig.value;
  const missing = !model
    ? 'Open a model first.'
    : !plan
      ? 'This config does not fit the model yet.'
      : !hasGraph && config && needsText(config) && texts.calibrate.value.trim() === ''
        ? 'The algorithms of this config need a text to calibrate with: see “Calibrate and measure” below.'
        : hasGraph && config && needsActivations(config) && !feeds()
          ? 'The static inputs of this config need feeds: see “Calibrate and measure” below.'
          : null;
  // After a run or a cancel the focused button disappears: move the focus.
  useEffect(() => {
    if (document.activeElement === document.body && run.value.state !== 'idle')
      button.current?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      {canWriteFolder && <DestinationChoice />}
      <button
        ref={button}
        type="button"
        class={`button ${again ? '' : 'button-primary'}`}
        disabled={missing !== null || job.value !== null}
        onClick={() => void startRun()}
      >
        {again ? 'Quantize again' : 'Quantize'}
      </button>
      <p class="fine">{missing ?? `Writes ${bytesText(plan?.totals.bytesAfter ?? 0)}.`}</p>
    </>
  );
}

export function RunPanel() {
  const current = run.value;
  const finished = current.state !== 'running' && shownReport.value !== null;
  return (
    <section class="step" aria-labelledby="step-run">
      <h2 id="step-run">
        <span class="step-number">3</span> Run and save
      </h2>
      {finished && <SavedFiles />}
      {current.state === 'running' ? <RunProgress {...current} /> : <Ready again={finished} />}
      {current.state === 'cancelled' && <p class="message">Cancelled. Nothing was saved.</p>}
      {current.state === 'failed' && <FailureMessage failure={current.failure} />}
      {current.state !== 'running' && !finished && <SavedFiles />}
    </section>
  );
}
