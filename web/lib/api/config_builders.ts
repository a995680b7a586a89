// Configs for people who prefer code to JSON: plain objects with the usual choices made, to be spread and changed.

import type { AihwkitConfig, BrevitasConfig, QuarkConfig, QuarkLayerConfig, Stages } from './config_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** One scale for the whole tensor. Unsigned integers get zero points. */
export function perTensor(dtype: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_tensor', ...rest };
}

/** One scale for each output channel (row of the weight). */
export function perChannel(dtype: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_channel', ch_axis: 0, ...rest };
}

/** One scale for `groupSize` values along the last axis. */
export function perGroup(dtype: string, groupSize = 128, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return { dtype, qscheme: 'per_group', ch_axis: -1, group_size: groupSize, ...rest };
}

/** OCP Microscaling: groups of 32 with power-of-two scales. `element`: fp4, fp6_e2m3, fp6_e3m2, fp8_e4m3, fp8_e5m2. */
export function microscaling(element: string, rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return perGroup(element, 32, { scale_format: 'e8m0', ...rest });
}

/** NVFP4: fp4 in groups of 16, whose scales are fp8 under one float32 scale. */
export function nvfp4(rest: Partial<QuantizationSpec> = {}): QuantizationSpec {
  return perGroup('fp4', 16, { scale_format: 'e4m3', ...rest });
}

/** Two stages: first `outer` (a floating dtype, per tensor), then `inner` on its quantized values. */
export function progressive(outer: QuantizationSpec, inner: QuantizationSpec): QuantizationSpec[] {
  return [outer, inner];
}

/** What the runtime does to a layer's inputs as they come: `token` = one scale for each token. */
export function dynamicInput(dtype: string, scheme: 'token' | 'tensor' = 'token'): QuantizationSpec {
  const spec = scheme === 'token' ? perChannel(dtype, { ch_axis: 1 }) : perTensor(dtype);
  return { ...spec, symmetric: true, is_dynamic: true };
}

const isSpec = (value: Stages | QuarkLayerConfig): value is Stages => Array.isArray(value) || 'dtype' in value;
const layerOf = (value: Stages | QuarkLayerConfig): QuarkLayerConfig => (isSpec(value) ? { weight: value } : value);

/** Beyond one spec for all layers. */
export interface QuarkConfigParts {
  /** Default `lm_head`. */
  exclude?: string[];
  /** Specs or layer configs by name or pattern. */
  layers?: Record<string, Stages | QuarkLayerConfig>;
  /** The same by class: `Embedding`, `Conv2d`... */
  layerTypes?: Record<string, Stages | QuarkLayerConfig>;
  /** Activations that enter the layers; without it weights alone are quantized. */
  inputs?: Stages;
  /** Rows that a group size does not divide: refused (the default), or quantized with a size that divides them. */
  indivisibleGroups?: 'error' | 'fallback';
  /** Whether routers, convolutions, towers and the like stay as they are, as in presets. Default false. */
  defaultExclusions?: boolean;
}

/** A config in Quark's dialect: `weight` for every layer but lm_head, embeddings and what `parts` says. */
export function quarkConfig(weight: Stages, parts: QuarkConfigParts = {}): QuarkConfig {
  const { exclude = ['lm_head'], layers = {}, layerTypes = {}, inputs } = parts;
  const { indivisibleGroups = 'error', defaultExclusions = false } = parts;
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

/** A config in aihwkit's dialect: Linear weights of `bits` bits, one scale for each output channel. */
export function aihwkitConfig(bits = 8, excluded: string[] = ['lm_head']): AihwkitConfig {
  const weight = { n_bits: bits, symmetric: true, per_channel: true, range_estimator: 'current_minmax' as const };
  return {
    dialect: 'aihwkit',
    module_qconfig_map: { Linear: { quantized_module: 'QuantLinear', module_qconfig: { weight_quant: weight } } },
    excluded_modules: excluded,
  };
}

/** A config of Quark's Brevitas extension: weights of `bits` bits, one scale for each output channel, no preprocessing. */
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
