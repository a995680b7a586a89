// Builders for common configs: plain objects, to be spread and changed.

import type {
  AihwkitConfig,
  BrevitasConfig,
  QuarkConfig,
  QuarkLayerConfig,
  Stages,
} from '../generated/config_types.js';
import { check } from './arguments.js';
import { failure } from './errors.js';
import type { Preset, PresetEdits } from './parsed_config_types.js';
import type { QuantizationSpec } from './tensor_types.js';
import { plainOf } from './values.js';

/** What the caller gave for `name`, read once. */
const own = <T>(value: T, name: string) => plainOf(value, name) as T;

/** One scale for the whole tensor. Unsigned integers get zero points. */
export function perTensor(dtype: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_tensor', ...own(rest, 'rest') };
}

/** One scale per output channel (row of the weight). */
export function perChannel(dtype: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_channel', ch_axis: 0, ...own(rest, 'rest') };
}

/** One scale per `groupSize` values along the last axis. */
export function perGroup(dtype: string, groupSize = 128, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_group', ch_axis: -1, group_size: groupSize, ...own(rest, 'rest') };
}

/** OCP Microscaling: groups of 32 with power-of-two scales. `element`: fp4, fp6_e2m3, fp6_e3m2, fp8_e4m3, fp8_e5m2. */
export function microscaling(element: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return perGroup(element, 32, { scale_format: 'e8m0', ...own(rest, 'rest') });
}

/** NVFP4: fp4 in groups of 16, with fp8 scales and one float32 scale per tensor. */
export function nvfp4(rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return perGroup('fp4', 16, { scale_format: 'e4m3', ...own(rest, 'rest') });
}

/** Two stages: `outer` (a floating dtype, per tensor), then `inner` on its quantized values. */
export function progressive(outer: QuantizationSpec, inner: QuantizationSpec): QuantizationSpec[] {
  return [outer, inner];
}

/** Dynamic quantization of a layer's inputs by the runtime; `token` = one scale per token. */
export function dynamicInput(dtype: string, scheme: 'token' | 'tensor' = 'token'): QuantizationSpec {
  const spec = scheme === 'token' ? perChannel(dtype, { ch_axis: 1 }) : perTensor(dtype);
  return { ...spec, symmetric: true, is_dynamic: true };
}

const isSpec = (value: Stages | QuarkLayerConfig): value is Stages => Array.isArray(value) || 'dtype' in value;
const layerOf = (value: Stages | QuarkLayerConfig): QuarkLayerConfig => (isSpec(value) ? { weight: value } : value);

/** Optional parts of a Quark config. */
export interface QuarkConfigParts {
  /** Default `lm_head`. */
  exclude?: string[];
  /** Specs or layer configs by name or pattern. */
  layers?: Record<string, Stages | QuarkLayerConfig>;
  /** Specs or layer configs by class: `Embedding`, `Conv2d`... */
  layerTypes?: Record<string, Stages | QuarkLayerConfig>;
  /** Activations entering the layers; default: only weights are quantized. */
  inputs?: Stages;
  /** Group sizes that do not divide a row: an error (the default), or a smaller size that divides it. */
  indivisibleGroups?: 'error' | 'fallback';
  /** Whether routers, convolutions, towers and the like are excluded, as in presets. Default false. */
  defaultExclusions?: boolean;
}

/** A config in Quark's dialect: `weight` for every layer except lm_head, embeddings and overrides in `parts`. */
export function quarkConfig(weight: Stages, parts: QuarkConfigParts = {}): QuarkConfig {
  const given = check(own(parts, 'parts'), 'object', 'parts');
  const { exclude = ['lm_head'], layers = {}, layerTypes = {}, inputs } = given;
  check(layers, 'object', 'layers');
  check(layerTypes, 'object', 'layerTypes');
  const { indivisibleGroups = 'error', defaultExclusions = false } = given;
  const converted = (map: typeof layers) =>
    Object.fromEntries(Object.entries(map).map(([name, value]) => [name, layerOf(value)]));
  return {
    global_quant_config: inputs ? { weight, input_tensors: inputs } : { weight },
    layer_type_quant_config: converted(layerTypes),
    layer_quant_config: converted(layers),
    exclude,
    indivisible_groups: indivisibleGroups,
    ...(defaultExclusions && { default_exclusions: true }),
  };
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const observers: Record<string, string> = {
  per_group: 'PerGroupMSEObserver',
  per_channel: 'PerChannelMSEObserver',
};

/** A weight spec with scales of the least squared error, where its scales can have any size and it names no observer. */
function bestSpec(spec: unknown): unknown {
  if (!isFields(spec) || !/^u?int[2-8]$/.test(String(spec.dtype))) return spec;
  const { qscheme, observer_cls, scale_format = null, scale_type = 'float', zero_point_type = 'int32' } = spec;
  const isFloat = scale_format === null || scale_format === 'float32';
  const isFree = isFloat && ['float', 'float32', 'float16', 'bfloat16'].includes(String(scale_type));
  const observer = observers[String(qscheme)];
  const isOwn = ['grid', 'round_method'].some((key) => key in spec) || spec.scale_refit === 'never';
  if (!observer || !isFree || zero_point_type !== 'int32' || observer_cls || isOwn) return spec;
  return { ...spec, observer_cls: observer, scale_refit: 'always' };
}

function bestLayer(layer: unknown): unknown {
  return isFields(layer) && layer.weight ? { ...layer, weight: bestSpec(layer.weight) } : layer;
}

const bestLayers = (layers: unknown) =>
  isFields(layers)
    ? Object.fromEntries(Object.entries(layers).map(([name, layer]) => [name, bestLayer(layer)]))
    : layers;

/** What loses least: each column's best scale, then error feedback, then descent from there, which at 2 bits gains twice. */
const bestAlgorithms = (bits: number) => [
  { name: 'awq', duo_scaling: true },
  { name: 'gptq', damp_percent: 0.05, refine: bits <= 2 ? 2 : 1 },
];

/** A config with what `best` of the edits says. Errors: argument-invalid. */
function bestConfig(config: Fields): Fields {
  const { global_quant_config: all, layer_quant_config: layers, layer_type_quant_config: types, ...rest } = config;
  const recipe = rest.dialect === 'gguf' ? String(rest.recipe) : undefined;
  if (recipe === undefined && (!isFields(all) || (rest.dialect ?? 'quark') !== 'quark'))
    throw failure('argument-invalid', 'config', "is neither in Quark's dialect nor a GGUF recipe, which best needs");
  if (recipe !== undefined && /^b?f\d+$/.test(recipe))
    throw failure('argument-invalid', 'recipe', `${recipe} rounds nothing that best could choose`);
  if (Array.isArray(rest.algo_config) ? rest.algo_config.length > 0 : isFields(rest.algo_config))
    throw failure('argument-invalid', 'algo_config', 'already names algorithms; remove them, or leave best out');
  if (recipe !== undefined) return { ...config, algo_config: bestAlgorithms(Number(/\d/.exec(recipe)?.[0] ?? 4)) };
  const weight = (all as Fields).weight;
  return {
    ...rest,
    global_quant_config: bestLayer(all),
    ...(layers !== undefined && { layer_quant_config: bestLayers(layers) }),
    ...(types !== undefined && { layer_type_quant_config: bestLayers(types) }),
    algo_config: bestAlgorithms(isFields(weight) && /int2$/.test(String(weight.dtype)) ? 2 : 4),
  };
}

const layerEdits = { exclude: 'strings', layers: 'object', layerTypes: 'object', best: 'boolean' } as const;

/** `presetConfig` of a quantizer: `presets` are those that it knows. Errors: argument-invalid. */
export function editedPreset(presets: readonly Preset[], preset: string | object, edits: PresetEdits): Fields {
  const { exclude, layers, layerTypes, best } = check(edits, layerEdits, 'edits');
  const named = (wanted: string) => {
    const found = presets.find((preset) => preset.name === wanted.toLowerCase());
    if (found) return found.config;
    throw failure('argument-invalid', wanted, 'is not a preset; presets() lists all');
  };
  const config =
    typeof preset === 'string' ? named(preset) : (check(plainOf(preset, 'config', ''), 'object', 'config') as Fields);
  const isRecipe = 'recipe' in config;
  if (isRecipe && layerTypes)
    throw failure('argument-invalid', 'layerTypes', 'do not work with GGUF recipes; name layers instead');
  const layerOfPreset = (wanted: string): unknown => {
    const { global_quant_config: global } = named(wanted) as QuarkConfig;
    if (!global) throw failure('argument-invalid', wanted, 'is a GGUF recipe, not a spec for a layer');
    return { weight: global.weight };
  };
  const chosen = (key: string, map: PresetEdits['layers'] = {}) =>
    Object.fromEntries(
      Object.entries(own(map, key)).map(([key, value]) => {
        if (typeof value !== 'string') return [key, layerOf(value)];
        return [key, isRecipe ? value : layerOfPreset(value)]; // a recipe's layers have types of llama.cpp
      }),
    );
  const before = (key: string, first: object) => {
    const others = Object.entries(Object(config[key]) as object).filter(([other]) => !(other in first));
    return Object.keys(first).length > 0 ? { [key]: { ...first, ...Object.fromEntries(others) } } : {};
  };
  const excluded = Array.isArray(config.exclude) ? config.exclude : [];
  const edited = {
    ...config,
    ...(exclude?.length && { exclude: [...excluded, ...exclude] }),
    ...before(isRecipe ? 'layers' : 'layer_quant_config', chosen('layers', layers)),
    ...before('layer_type_quant_config', chosen('layerTypes', layerTypes)),
  };
  return best ? bestConfig(edited) : edited;
}

/** A config in aihwkit's dialect: Linear weights of `bits` bits, one scale per output channel. */
export function aihwkitConfig(bits = 8, excluded: string[] = ['lm_head']): AihwkitConfig {
  const weight = { n_bits: bits, symmetric: true, per_channel: true, range_estimator: 'current_minmax' as const };
  return {
    dialect: 'aihwkit',
    module_qconfig_map: { Linear: { quantized_module: 'QuantLinear', module_qconfig: { weight_quant: weight } } },
    excluded_modules: excluded,
  };
}

/** A config of Quark's Brevitas extension: weights of `bits` bits, one scale per output channel, no preprocessing. */
export function brevitasConfig(bits = 8, exclude: string[] = ['lm_head']): BrevitasConfig {
  return {
    dialect: 'brevitas',
    brevitas_version: '0.12.1',
    global_quant_config: { weight: { bit_width: bits, qscheme: 'per_channel', symmetric: true, param_type: 'stats' } },
    pre_quant_opt_config: [],
    algo_config: [],
    exclude,
  };
}
