// ONNX models: feeds for calibrating static inputs, and the choice of those inputs.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Model } from 'wasmquant';
import type { ModelInput } from 'wasmquant/onnxruntime';
import { webRuntimeTitle } from '../../present/runtimes/onnx_lines';
import { countText } from '../../present/units';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { chosenConfig, useConfig } from '../configure/choice';
import { type StaticDtype, staticInputs, withStaticInputs } from '../configure/static-inputs';
import { useFieldDrop } from '../open/field-drop';
import { isBusy } from '../quality/job';
import { feeds, feedsFailure, forgetFeeds, requiredInputs, takeFeeds } from './feeds';

function InputTable({ inputs }: { inputs: ModelInput[] }) {
  return (
    <table class="compare-table">
      <caption class="visually-hidden">Inputs of the model</caption>
      <thead>
        <tr>
          <th scope="col">Input</th>
          <th scope="col">Elements</th>
          <th scope="col">Shape</th>
        </tr>
      </thead>
      <tbody>
        {inputs.map(({ name, type, shape }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            <td>{type || 'not said'}</td>
            <td>
              <code>{shape ? `[${shape.map((size) => size ?? '?').join(', ')}]` : 'not said'}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function FeedFiles() {
  const { isOver, handlers } = useFieldDrop((files) => {
    if (!isBusy.value) void takeFeeds(files);
  });
  const given = feeds();
  const names = given?.groups.flat().map(({ name }) => name) ?? [];
  const plural = given?.count === 1 ? 'sample' : 'samples';
  return (
    <section class={`feed-files ${isOver ? 'drop-zone-over' : ''}`} aria-label="Feeds" {...handlers}>
      <p role="status">
        {given
          ? `${countText(given.count)} ${plural} from ${names.length === 1 ? names[0] : `${countText(names.length)} files`}`
          : 'No feeds yet.'}
      </p>
      <div class="actions">
        <span class="file-button">
          <input
            id="feed-files"
            type="file"
            multiple
            accept=".npy,.npz,.safetensors"
            disabled={isBusy.value}
            aria-describedby="feeds-note"
            onChange={(event) => {
              const files = [...(event.currentTarget.files ?? [])];
              event.currentTarget.value = '';
              void takeFeeds(files);
            }}
          />
          <label for="feed-files" class="button button-small">
            Choose feeds…
          </label>
        </span>
        {given && (
          <button type="button" class="button button-small" disabled={isBusy.value} onClick={() => void forgetFeeds()}>
            Forget them
          </button>
        )}
      </div>
    </section>
  );
}

const choices: { value: StaticDtype | null; title: string; description: string }[] = [
  { value: null, title: 'As they are', description: 'only weights are quantized' },
  { value: 'uint8', title: 'Static uint8', description: 'with a zero point: uses the full range after ReLU' },
  { value: 'int8', title: 'Static int8', description: 'symmetric' },
];

function StaticChoice() {
  const config = chosenConfig.value;
  const fits = config !== null && 'global_quant_config' in config;
  const current = fits ? staticInputs(config) : null;
  return (
    <fieldset class="algorithms" disabled={isBusy.value || !fits}>
      <legend>Inputs of layers</legend>
      {choices.map(({ value, title, description }) => (
        <label key={title}>
          <input
            type="radio"
            name="static-inputs"
            checked={fits && current === value}
            onChange={() => {
              if (config) useConfig(withStaticInputs(config, value));
            }}
          />{' '}
          {title} <span class="fine">{description}</span>
        </label>
      ))}
      <p class="fine">
        {!fits
          ? "They need a config in Quark's dialect."
          : current === 'other'
            ? 'The config sets other inputs.'
            : 'Static inputs (QDQ) need feeds, and weights per channel or per tensor.'}
      </p>
    </fieldset>
  );
}

export function FeedsView({ model }: { model: Model }) {
  const inputs = useSignal<ModelInput[] | null>(null);
  const failure = useSignal<Failure | null>(null);
  useEffect(() => {
    let isGone = false;
    requiredInputs(model)
      .then((found) => {
        if (!isGone) inputs.value = found;
      })
      .catch((error: unknown) => {
        if (!isGone) failure.value = explain(error, 'The inputs of the model cannot be determined');
      });
    return () => {
      isGone = true;
    };
  }, [model]);
  return (
    <section class="panel" aria-labelledby="quality">
      <h2 id="quality">Calibrate</h2>
      <p class="fine" id="feeds-note">
        To find the scales of static inputs, {webRuntimeTitle} runs the model on your feeds in this tab. Feeds are .npy,
        .npz or .safetensors files whose arrays have the names of the inputs; for several samples, name them{' '}
        <code>x.0</code>, <code>x.1</code> and so on, add one axis, or use one archive per sample.
      </p>
      <div class="quality-parts">
        <div class="quality-part">
          <h3>Feeds</h3>
          {inputs.value && <InputTable inputs={inputs.value} />}
          {failure.value && <FailureMessage failure={failure.value} />}
          <FeedFiles />
          {feedsFailure.value && <FailureMessage failure={feedsFailure.value} />}
        </div>
        <StaticChoice />
      </div>
    </section>
  );
}
