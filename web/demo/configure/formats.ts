// Which presets are for which formats, and formats for which models.
import { type Model, type OutputFormat, outputFormats, type Preset } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { isRecipe } from '../../present/config_edits';

/** Formats that the model can be written in. */
export const formatsOf = (model: Model | undefined): OutputFormat[] =>
  outputFormats.filter((name) => formats.outputs[name].sources.includes(model?.format ?? 'safetensors'));

/** Recipes are for GGUF files, all other presets for all other formats. */
export const isRecipePreset = (preset: Preset | null | undefined) => preset != null && isRecipe(preset.config);

/** Whether a format takes configs of this kind: recipes, or all others. */
export const takes = (format: OutputFormat, isOfRecipe: boolean) => formats.outputs[format].takesRecipes === isOfRecipe;

/** Whether plans by budget go with a format: they are configs in Quark's dialect. */
export const holdsPlans = (format: OutputFormat) => !formats.outputs[format].isWholeFile;

/** Recipes of floats: there is no code to choose. */
const isFloatRecipe = (recipe: unknown) => /^b?f\d+$/.test(String(recipe));

/** Whether calibrated algorithms choose the codes of a config's weights in a format. */
export const holdsAlgorithms = (config: Record<string, unknown>, format: OutputFormat): boolean =>
  config.dialect === 'gguf' ? !isFloatRecipe(config.recipe) : 'global_quant_config' in config && holdsPlans(format);

/** Presets for the three cards before anything is measured, by format: the first of each list that fits the model. */
export const usualSchemes: Record<OutputFormat, Record<'safe' | 'balanced' | 'smallest', readonly string[]>> = {
  gguf: {
    safe: ['q8_0', 'q6_k', 'q5_k_m'],
    balanced: ['q4_k_m', 'q4_0', 'q3_k_m'],
    smallest: ['q3_k_m', 'iq4_xs', 'q2_k'],
  },
  'compressed-tensors': {
    safe: ['int8', 'fp8_per_channel'],
    balanced: ['int4_wo_128', 'int4_wo_32', 'int4_wo_per_channel'],
    smallest: ['mxfp4', 'int4_wo_per_channel'],
  },
  onnx: {
    safe: ['int8'],
    balanced: ['int4_wo_32', 'int4_wo_128', 'int4_wo_per_channel'],
    smallest: ['int4_wo_128', 'int4_wo_per_channel'],
  },
  mlx: {
    safe: ['mlx_8bit'],
    balanced: ['mlx_4bit'],
    smallest: ['mlx_3bit'],
  },
  quark: { safe: ['int8'], balanced: ['int4_wo_128', 'int4_wo_32'], smallest: ['int3_wo_128', 'int3_wo_32', 'mxfp4'] },
  gptq: { safe: ['int8'], balanced: ['int4_wo_128', 'int4_wo_32'], smallest: ['int3_wo_128', 'int3_wo_32'] },
  awq: { safe: [], balanced: ['uint4_wo_128', 'uint4_wo_32'], smallest: [] },
  'fake-quantized': {
    safe: ['int8'],
    balanced: ['int4_wo_128', 'int4_wo_32'],
    smallest: ['int3_wo_128', 'int3_wo_32'],
  },
};
