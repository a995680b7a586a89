// One screen, three steps: open → choose → run and save; below them the result, first predicted and then measured.
import { ChoosePanel } from '../configure/choose-panel';
import { OpenPanel } from '../open/open-panel';
import { SummaryBar } from '../report/summary-bar';
import { RunPanel } from '../run/run-panel';
import { Announcer } from './announcer';
import { quantizer, startFailure } from './engine';
import { FailureMessage } from './failure';
import { Views } from './views';

export function App() {
  return (
    <>
      <header class="page-header">
        <div>
          <h1>wasmquant</h1>
          <p>Quantize model weights in this tab. Your files stay on this machine.</p>
        </div>
        {quantizer.value && <span class="fine version">{quantizer.value.version.library}</span>}
      </header>
      <main>
        {startFailure.value && <FailureMessage failure={startFailure.value} />}
        <div class="steps">
          <OpenPanel />
          <ChoosePanel />
          <RunPanel />
        </div>
        <SummaryBar />
        <Views />
      </main>
      <Announcer />
    </>
  );
}
