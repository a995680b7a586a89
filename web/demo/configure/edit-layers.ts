// Edits of a config for single layers: in Quark's keys, or as types of a GGUF recipe. The last edit of a layer replaces
// earlier ones.

import { type Config, isRecipe, layersKey, withExclusions, withLayers } from '../../present/config_edits';

const asObject = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Config) : {});
const asList = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : []);

/** A pattern that matches exactly this layer name. */
const literal = (name: string) => name.replace(/[*?[]/g, '[$&]');

function without(value: unknown, names: readonly string[]): Config {
  return Object.fromEntries(Object.entries(asObject(value)).filter(([name]) => !names.includes(name)));
}

/** Whether single layers of this config can be edited here: not in other dialects. */
export function isEditable(config: Config, dialect: string): boolean {
  return dialect === 'quark' || isRecipe(config);
}

/** Removes the entries that name these layers. */
export function withoutLayers(config: Config, layers: readonly string[]): Config {
  const names = layers.flatMap((layer) => [layer, literal(layer)]);
  const key = layersKey(config);
  const { [key]: settings, exclude, ...rest } = config;
  const kept = without(settings, names);
  const excluded = asList(exclude).filter((pattern) => !names.includes(String(pattern)));
  return {
    ...rest,
    ...(exclude !== undefined && { exclude: excluded }),
    ...(Object.keys(kept).length > 0 && { [key]: kept }),
  };
}

/** A spec (or a list of two stages) for the weights of these layers, with precedence over others. */
export function withSpec(config: Config, layers: readonly string[], weight: object): Config {
  return withLayers(withoutLayers(config, layers), new Map(layers.map((layer) => [layer, { weight }])));
}

/** A block type of GGUF for these layers. */
export function withType(config: Config, layers: readonly string[], type: string): Config {
  return withLayers(withoutLayers(config, layers), new Map(layers.map((layer) => [literal(layer), type])));
}

export function withExcluded(config: Config, layers: readonly string[]): Config {
  return withExclusions(withoutLayers(config, layers), layers.map(literal));
}
