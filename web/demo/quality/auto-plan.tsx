// A bit budget, and the dtypes of all layers that spend it best.
import { signal } from '@preact/signals';
import type { AutoConfig } from 'wasmquant';
import { schemeText } from '../../present/spec_text';
import { bytesText } from '../../present/units';
import { quantizer } from '../app/engine';
import { choice, useConfig } from '../configure/choice';
import { holdsPlans } from '../configure/formats';
import { type OpenedModel, opened } from '../open/opened';
import { isBusy, runJob } from './job';
import { textFor } from './texts';
import { tokensOf } from './tokenize';

const [leastBits, mostBits, usualBits] = [3.5, 8, 4.5];
const targetBits = signal(usualBits);
/** The last plan, and of which model. */
const found = signal<{ of: OpenedModel; plan: AutoConfig } | null>(null);

function find(source: OpenedModel): Promise<void> {
  return runJob('Measuring layers', async (signal, onProgress) => {
    const { format } = choice.value;
    const tokens = await tokensOf(source.model, await textFor('calibrate'), signal);
    const options = { targetBits: targetBits.value, calibration: { tokens }, format, signal, onProgress };
    const plan = await quantizer.value?.languageModel(source.model).autoConfig(options);
    if (!plan) return;
    found.value = { of: source, plan };
    useConfig(plan.config);
  });
}

/** The table that led to the last plan. */
export function AutoTable() {
  const last = found.value;
  if (!last || last.of !== opened.value) return null;
  return <Table plan={last.plan} />;
}

function Table({ plan }: { plan: AutoConfig }) {
  const lossOf = (layer: AutoConfig['layers'][number], index: number) => layer.choices[index]?.loss;
  return (
    <details class="auto-table">
      <summary>
        {plan.totals.bitsPerWeight.toFixed(2)} bits per weight, {bytesText(plan.totals.bytesAfter)}: what each layer got
      </summary>
      <div class="auto-scroll">
        <table class="compare-table">
          <thead>
            <tr>
              <th scope="col">Layer</th>
              {plan.candidates.map((spec) => (
                <th scope="col" key={JSON.stringify(spec)}>
                  {spec.dtype} <span class="fine">{schemeText(spec)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {plan.layers.map((layer) => (
              <tr key={layer.name}>
                <th scope="row">
                  <code>{layer.name.replace(/\.weight$/, '')}</code>
                </th>
                {plan.candidates.map((spec, index) => (
                  <td key={JSON.stringify(spec)} class={index === layer.chosen ? 'auto-chosen' : ''}>
                    {lossOf(layer, index)?.toExponential(1) ?? '–'}
                    {index === layer.chosen && <span class="visually-hidden"> chosen</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="fine">
        Numbers are losses: squared error that only this layer adds to the residual stream, relative to it.
      </p>
    </details>
  );
}

export function AutoPlan() {
  const source = opened.value;
  if (!source || !holdsPlans(choice.value.format)) return null;
  return (
    <div class="quality-part">
      <h3>Plan by budget</h3>
      <p class="fine">
        Every linear layer is measured with every dtype on the text to calibrate with; bits go where they help most.
      </p>
      <div class="slider">
        <label for="target-bits">Bits per weight</label>
        <input
          id="target-bits"
          type="range"
          min={leastBits}
          max={mostBits}
          step={0.1}
          value={targetBits.value}
          disabled={isBusy.value}
          onInput={(event) => {
            targetBits.value = event.currentTarget.valueAsNumber;
          }}
        />
        <output for="target-bits">{targetBits.value.toFixed(1)}</output>
      </div>
      <div class="actions">
        <button type="button" class="button" disabled={isBusy.value} onClick={() => void find(source)}>
          Find the best config
        </button>
      </div>
    </div>
  );
}
