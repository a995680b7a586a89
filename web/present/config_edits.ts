// Edits of a config for single layers: in Quark's keys, or as types of a GGUF recipe.
import type { Preset } from 'wasmquant';

export type Config = Record<string, unknown>;

export const isRecipe = (config: Config) => 'recipe' in config;

/** The object of a config that configures single layers by pattern; the first match counts. */
export const layersKey = (config: Config) => (isRecipe(config) ? 'layers' : 'layer_quant_config');

/** The config named by a preset; if the output takes recipes, names are those of recipes. */
export function configOf({ name, config }: Preset, takesRecipes: boolean): Config {
  return takesRecipes && !isRecipe(config) ? { dialect: 'gguf', recipe: name } : config;
}

/** Adds patterns to the exclusions. */
export function withExclusions(config: Config, patterns: readonly string[]): Config {
  if (patterns.length === 0) return config;
  const others = Array.isArray(config.exclude) ? (config.exclude as unknown[]) : [];
  return { ...config, exclude: [...others, ...patterns] };
}

/** Puts layers before those in the config, and replaces entries with the same pattern. */
export function withLayers(
  config: Config,
  layers: ReadonlyMap<string, unknown>,
  key: string = layersKey(config),
): Config {
  if (layers.size === 0) return config;
  const others = Object.entries(Object(config[key]) as object).filter(([name]) => !layers.has(name));
  return { ...config, [key]: Object.fromEntries([...layers, ...others]) };
}
