// Language models on real text: calibrated algorithms, a plan by budget, and the cost of quantization.
import { signal } from '@preact/signals';
import { formats } from 'wasmquant/internal';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { FeedsView } from '../feeds/feeds-view';
import { opened } from '../open/opened';
import { AlgorithmChoice } from './algorithm-choice';
import { AutoPlan, AutoTable } from './auto-plan';
import { isBusy } from './job';
import { Measure } from './measure';
import { TextField } from './text-field';
import { showBuiltInTexts } from './texts';

const textFailure = signal<Failure | null>(null);

async function takeBuiltInTexts(): Promise<void> {
  textFailure.value = null;
  try {
    await showBuiltInTexts();
  } catch (error) {
    textFailure.value = explain(error, 'The built-in texts could not be loaded');
  }
}

export function QualityView() {
  const model = opened.value?.model;
  const format = model && formats.inputs[model.format];
  if (model && format?.hasGraph) return <FeedsView model={model} />;
  if (model && !format?.carriesConfig && (!format?.hasSiblingFiles || !model.config)) {
    return (
      <section class="panel" aria-labelledby="quality">
        <h2 id="quality">Calibrate and measure</h2>
        <p class="fine">
          For models with the Llama architecture: a GGUF file, or safetensors with their config.json and tokenizer.json.
        </p>
      </section>
    );
  }
  return (
    <section class="panel" aria-labelledby="quality">
      <h2 id="quality">Calibrate and measure</h2>
      <div class="texts">
        <TextField use="calibrate" title="Text to calibrate with" description="40 kB of ordinary text is plenty." />
        <TextField
          use="measure"
          title="Text to measure on"
          description="Text that was not used to calibrate, such as the model will read."
        />
      </div>
      <div class="actions">
        <button
          type="button"
          class="button button-small"
          disabled={isBusy.value}
          onClick={() => void takeBuiltInTexts()}
        >
          Show the built-in texts
        </button>
        <span class="fine">English prose. They are used where a field is empty.</span>
      </div>
      {textFailure.value && <FailureMessage failure={textFailure.value} />}
      <div class="quality-parts">
        <AlgorithmChoice />
        <AutoPlan />
      </div>
      <AutoTable />
      <Measure />
    </section>
  );
}
