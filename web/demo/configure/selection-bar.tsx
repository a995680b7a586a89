// What to do with the selected layers: another scheme, no quantization, or the same as the rest.
import { type Config, isRecipe } from '../../present/config_edits';
import { countText } from '../../present/units';
import { chosenConfig, presets, useConfig } from './choice';
import { withExcluded, withoutLayers, withSpec, withType } from './edit-layers';
import { isRecipePreset } from './formats';
import { selected, selectedLayers } from './selection';

const ggufTypes = ['q8_0', 'q6_k', 'q5_k', 'q4_k', 'q3_k', 'q2_k', 'iq4_nl', 'f16', 'f32'];

/** Weight specs of the presets for formats other than GGUF, by title. */
function schemes(): { name: string; title: string; weight: object }[] {
  return presets.value.flatMap((preset) => {
    const weight = (preset.config.global_quant_config as { weight?: object } | undefined)?.weight;
    const isQuark = !isRecipePreset(preset) && preset.config.dialect === undefined;
    return isQuark && weight ? [{ name: preset.name, title: preset.title, weight }] : [];
  });
}

export function SelectionBar() {
  const layers = selectedLayers.value;
  const config = chosenConfig.value;
  if (layers.length === 0 || !config) return null;
  // The marks go with the action: the next one is for what is marked then.
  const apply = (edited: Config) => {
    useConfig(edited);
    selected.value = new Set();
  };
  const isGguf = isRecipe(config);
  const known = schemes();
  const choose = (name: string) => {
    const scheme = known.find((candidate) => candidate.name === name);
    if (isGguf) apply(withType(config, layers, name));
    else if (scheme) apply(withSpec(config, layers, scheme.weight));
  };
  return (
    <section class="selection-bar" aria-label="Selected layers">
      <span>{countText(layers.length)} selected</span>
      <select
        aria-label="Scheme of the selected layers"
        value=""
        onChange={(event) => {
          choose(event.currentTarget.value);
          event.currentTarget.value = '';
        }}
      >
        <option value="">Scheme…</option>
        {isGguf
          ? ggufTypes.map((type) => (
              <option key={type} value={type}>
                {type}
              </option>
            ))
          : known.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
      </select>
      <button type="button" class="button button-small" onClick={() => apply(withExcluded(config, layers))}>
        Exclude
      </button>
      <button type="button" class="button button-small" onClick={() => apply(withoutLayers(config, layers))}>
        Like the rest
      </button>
      <button
        type="button"
        class="button button-small"
        onClick={() => {
          selected.value = new Set();
        }}
      >
        Clear
      </button>
    </section>
  );
}
