// Before a model: what this is, one place to drop it, and what it will give.
import { allTitles } from '../../present/runtimes/table';
import { quantizer, startFailure } from '../app/engine';
import { FailureMessage } from '../app/failure';
import { showStage } from '../app/stage';
import { DropZone } from '../open/drop-zone';
import { opened, openFailure, opening } from '../open/opened';
import { SampleCurve } from './sample-curve';

export function FirstView() {
  return (
    <div class="first">
      <div class="first-main">
        <h1>Make a model smaller, in this tab.</h1>
        <p class="lead">
          Drop a model, say where it will run, see what each size costs, save a file that loads. No upload, no Python,
          no GPU.
        </p>
        <DropZone />
        {openFailure.value && <FailureMessage failure={openFailure.value} />}
        <p class="fine" role="status">
          {opening.value
            ? `Opening ${opening.value}…`
            : !quantizer.value && !startFailure.value
              ? 'Loading the quantizer…'
              : `Loads in ${allTitles()}.`}
        </p>
        {opened.value && (
          <p>
            <button type="button" class="link" onClick={() => showStage('choose')}>
              Back to {opened.value.title}
            </button>
          </p>
        )}
      </div>
      <SampleCurve />
    </div>
  );
}
