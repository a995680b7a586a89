// With a model: where it will run, how small, what each size costs, one button.
import { signal } from '@preact/signals';
import { formats } from 'wasmquant/internal';
import { Views } from '../app/views';
import { presets } from '../configure/choice';
import { ConfigText } from '../configure/config-text';
import { CurveProgress, CurveView } from '../curve/view';
import { betterTitle, makeBetter, whyNotBetter } from '../improve/better';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { JobProgress } from '../quality/job-progress';
import { RunLine } from '../run/run-line';
import { CardsView } from './cards-view';
import { Conflict, CustomNote } from './custom-note';
import { ModelCard } from './model-card';
import { SchemeList } from './scheme-list';
import { WherePanel } from './where-panel';

type Panel = 'curve' | 'schemes' | 'config';
const shown = signal<Panel>('curve');

function PanelButton({ panel, title }: { panel: Panel; title: string }) {
  return (
    <button
      type="button"
      class="link"
      aria-expanded={shown.value === panel}
      onClick={() => {
        shown.value = shown.value === panel ? 'curve' : panel;
      }}
    >
      {title}
    </button>
  );
}

function Better() {
  const why = whyNotBetter.value;
  const format = opened.value?.model.format;
  // Neither ONNX models nor GGUF files are calibrated here.
  if (format && (formats.inputs[format].hasGraph || formats.inputs[format].carriesConfig)) return null;
  return (
    <div class="better">
      <button type="button" class="button" disabled={isBusy.value || why !== null} onClick={() => void makeBetter()}>
        Make it better
      </button>
      <span class="fine">{why ?? betterTitle.value}</span>
    </div>
  );
}

export function ChooseView() {
  const panel = shown.value;
  return (
    <>
      <div class="choose">
        <aside class="choose-side" aria-label="Model and runtime">
          <ModelCard />
          <WherePanel />
        </aside>
        <div class="choose-main">
          <CardsView />
          <section class="card curve-card" aria-labelledby="curve-title">
            <div class="curve-head">
              <h2 id="curve-title" class="over">
                Size against loss <CurveProgress />
              </h2>
              <span class="curve-links">
                <PanelButton panel="schemes" title={`All ${presets.value.length} schemes`} />
                <PanelButton panel="config" title="Edit the config" />
              </span>
            </div>
            {panel === 'schemes' && <SchemeList />}
            {panel === 'config' && <ConfigText />}
            <div hidden={panel !== 'curve'}>
              <CurveView />
            </div>
          </section>
          <CustomNote />
          <Conflict />
          <RunLine />
          <JobProgress />
          <Better />
        </div>
      </div>
      <Views of="choose" />
    </>
  );
}
