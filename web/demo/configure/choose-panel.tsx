import { Diagnostics } from '../app/diagnostics';
import { quantizer } from '../app/engine';
import { FailureMessage } from '../app/failure';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { choice, chosenPreset, planned, presets } from './choice';
import { ConfigText } from './config-text';
import { firstPreset, firstRecipe, formatsOf, isRecipePreset } from './formats';
import { predictionText } from './predictions';

export function ChoosePanel() {
  const { preset, format, configText } = choice.value;
  const busy = !quantizer.value || isBusy.value;
  const formats = formatsOf(opened.value?.model);
  const isOnnx = format === 'onnx';
  const chosenFormat = formats.find(({ name }) => name === format);
  const schemes = presets.value.filter((candidate) => !isRecipePreset(candidate));
  const recipes = presets.value.filter(isRecipePreset);
  const choosePreset = (name: string) => {
    const forGguf = recipes.some((recipe) => recipe.name === name);
    const kept = format === 'gguf' ? 'compressed-tensors' : format;
    choice.value = { preset: name, format: forGguf ? 'gguf' : kept, configText: null };
  };
  const chooseFormat = (name: string) => {
    const found = formats.find((candidate) => candidate.name === name);
    if (!found) return;
    const fits = isRecipePreset(chosenPreset.value) === (found.name === 'gguf');
    const other = found.name === 'gguf' ? firstRecipe : firstPreset;
    choice.value = { preset: fits ? preset : other, format: found.name, configText: fits ? configText : null };
  };
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
          <optgroup label="Schemes">
            {schemes.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
                {name !== preset && predictionText(name)}
              </option>
            ))}
          </optgroup>
          {!isOnnx && (
            <optgroup label="llama.cpp's recipes">
              {recipes.map(({ name, title }) => (
                <option key={name} value={name}>
                  {title}
                  {name !== preset && predictionText(name)}
                </option>
              ))}
            </optgroup>
          )}
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
          {formats.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        <p class="fine" id="format-description">
          {chosenFormat?.description}
        </p>
      </div>
      <ConfigText />
      {planned.value.plan && <Diagnostics items={planned.value.plan.diagnostics} />}
      {planned.value.failure && <FailureMessage failure={planned.value.failure} />}
    </section>
  );
}
