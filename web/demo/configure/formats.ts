// The formats this page offers, and which presets are for which.
import { formats, type Model, type OutputFormat, outputFormats, type Preset } from 'wasmquant';
import { isRecipe } from '../../present/config_edits';

/** Formats that the model can be written in, of those that say what they are for. */
export const formatsOf = (model: Model | undefined): OutputFormat[] =>
  outputFormats.filter((name) => {
    const { description, sources } = formats.outputs[name];
    return description !== '' && sources.includes(model?.format ?? 'safetensors');
  });

/** Of a preset that is a recipe, and of all others, where the format does not take it: the first that does. */
export function formatFor(preset: Preset | null | undefined, format: OutputFormat, model: Model | undefined) {
  const fits = (name: OutputFormat) => formats.outputs[name].takesRecipes === isRecipePreset(preset);
  return fits(format) ? format : (formatsOf(model).find(fits) ?? format);
}

/** Recipes are for GGUF files, all other presets for all other formats. */
export const isRecipePreset = (preset: Preset | null | undefined) => preset != null && isRecipe(preset.config);

/** Whether calibrated algorithms and plans by budget go with a format: blocks are calibrated, and codes have a place. */
export const holdsAlgorithms = (format: OutputFormat) => !formats.outputs[format].isWholeFile;

export const firstPreset = 'int4_wo_128';
export const perChannelPreset = 'int8';
export const firstRecipe = 'q4_k_m';
/** A preset that goes with a format. */
export const firstPresetOf = (format: OutputFormat) =>
  formats.outputs[format].takesRecipes ? firstRecipe : firstPreset;
