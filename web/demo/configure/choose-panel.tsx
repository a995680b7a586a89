import { formats } from 'wasmquant';
import { otherDiagnostics } from '../../present/output_size';
import { Diagnostics } from '../app/diagnostics';
import { quantizer } from '../app/engine';
import { FailureMessage } from '../app/failure';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { choice, chosenPreset, planned, presets } from './choice';
import { ConfigText } from './config-text';
import { firstPresetOf, formatFor, formatsOf, isRecipePreset } from './formats';
import { predictionText } from './predictions';

export function ChoosePanel() {
  const { preset, format, configText } = choice.value;
  const busy = !quantizer.value || isBusy.value;
  const model = opened.value?.model;
  const offered = formatsOf(model);
  const takes = (recipes: boolean) => offered.some((name) => formats.outputs[name].takesRecipes === recipes);
  const schemes = presets.value.filter((candidate) => !isRecipePreset(candidate));
  const recipes = presets.value.filter(isRecipePreset);
  const choosePreset = (name: string) => {
    const chosen = presets.value.find((candidate) => candidate.name === name);
    choice.value = { preset: name, format: formatFor(chosen, format, model), configText: null };
  };
  const chooseFormat = (name: string) => {
    const found = offered.find((candidate) => candidate === name);
    if (!found) return;
    const fits = isRecipePreset(chosenPreset.value) === formats.outputs[found].takesRecipes;
    choice.value = {
      preset: fits ? preset : firstPresetOf(found),
      format: found,
      configText: fits ? configText : null,
    };
  };
  const options = (offeredPresets: typeof presets.value) =>
    offeredPresets.map(({ name, title }) => (
      <option key={name} value={name}>
        {title}
        {name !== preset && predictionText(name)}
      </option>
    ));

  return (
    <section class="step" aria-labelledby="step-choose">
      <h2 id="step-choose">
        <span class="step-number">2</span> Choose
      </h2>
      <div class="field">
        <label for="preset">Preset</label>
        <select
          id="preset"
          value={preset}
          disabled={busy}
          aria-describedby="preset-description"
          onChange={(event) => choosePreset(event.currentTarget.value)}
        >
          {takes(false) && <optgroup label="Schemes">{options(schemes)}</optgroup>}
          {takes(true) && <optgroup label="llama.cpp's recipes">{options(recipes)}</optgroup>}
        </select>
        <p class="fine" id="preset-description">
          {configText === null ? chosenPreset.value?.description : 'Edited: the config below is used.'}
        </p>
      </div>
      <div class="field">
        <label for="format">Output format</label>
        <select
          id="format"
          value={format}
          disabled={busy}
          aria-describedby="format-description"
          onChange={(event) => chooseFormat(event.currentTarget.value)}
        >
          {offered.map((name) => (
            <option key={name} value={name}>
              {formats.outputs[name].title}
            </option>
          ))}
        </select>
        <p class="fine" id="format-description">
          {formats.outputs[format].description}
        </p>
      </div>
      <ConfigText />
      {planned.value.plan && <Diagnostics items={otherDiagnostics(planned.value.plan.diagnostics)} />}
      {planned.value.failure && <FailureMessage failure={planned.value.failure} />}
    </section>
  );
}
