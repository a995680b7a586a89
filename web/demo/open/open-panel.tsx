import { formats } from 'wasmquant';
import { bytesText, countText, elementsText } from '../../present/units';
import { Diagnostics } from '../app/diagnostics';
import { quantizer, startFailure } from '../app/engine';
import { FailureMessage } from '../app/failure';
import { DropZone } from './drop-zone';
import { type OpenedModel, opened, openFailure, opening } from './opened';
import { UrlField } from './url-field';

function elements(shape: number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function ModelFacts({ title, model }: OpenedModel) {
  const size = model.bytes;
  const weights = model.tensors.reduce((sum, tensor) => sum + elements(tensor.shape), 0);
  const architectures = model.config?.architectures;
  const facts = [
    Array.isArray(architectures) ? String(architectures[0]) : null,
    `${countText(model.tensors.length)} tensors`,
    `${elementsText(weights)} params`,
    bytesText(size),
  ].filter((fact) => fact !== null);
  return (
    <div class="model-facts">
      <p class="model-title" title={title}>
        {title}
      </p>
      <ul class="fine facts">
        {facts.map((fact) => (
          <li key={fact}>{fact}</li>
        ))}
      </ul>
      {!model.config && formats.inputs[model.format].hasSiblingFiles && (
        <p class="fine">The model has no config.json; the saved one contains only the quantization settings.</p>
      )}
      <Diagnostics items={model.diagnostics} />
    </div>
  );
}

export function OpenPanel() {
  return (
    <section class="step" aria-labelledby="step-open">
      <h2 id="step-open">
        <span class="step-number">1</span> Open
      </h2>
      {opened.value && <ModelFacts {...opened.value} />}
      <DropZone />
      <UrlField />
      {!quantizer.value && !startFailure.value && <p class="fine">Loading the quantizer…</p>}
      {opening.value && <p class="fine">Opening {opening.value}…</p>}
      {openFailure.value && <FailureMessage failure={openFailure.value} />}
    </section>
  );
}
