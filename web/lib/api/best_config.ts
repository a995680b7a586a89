// What loses least at a scheme's size, as far as this library knows: docs/choose-a-scheme.md has the figures.

import { failure } from './errors.js';

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
  const others = ['grid', 'round_method', 'scale_refit'].some((key) => key in spec);
  if (!observer || !isFree || zero_point_type !== 'int32' || observer_cls || others) return spec;
  return { ...spec, observer_cls: observer, scale_refit: true };
}

function bestLayer(layer: unknown): unknown {
  return isFields(layer) && layer.weight ? { ...layer, weight: bestSpec(layer.weight) } : layer;
}

const bestLayers = (layers: unknown) =>
  isFields(layers)
    ? Object.fromEntries(Object.entries(layers).map(([name, layer]) => [name, bestLayer(layer)]))
    : layers;

/**
 * A config in Quark's dialect with the algorithms and scales that lose least at its size, for a run with `calibration`: `awq`
 * with duo scaling, then `gptq` refined, and scales of integers by least squares. Files and runtimes are the same.
 * @throws QuantizationError `argument-invalid` for configs of other dialects, GGUF recipes, and configs that name algorithms
 */
export function bestConfig(config: object): Record<string, unknown> {
  const {
    global_quant_config: all,
    layer_quant_config: layers,
    layer_type_quant_config: types,
    ...rest
  } = config as Fields;
  if (!isFields(all) || (rest.dialect ?? 'quark') !== 'quark')
    throw failure(
      'argument-invalid',
      'config',
      "is not in Quark's dialect, which the best is for. For GGUF give an importance matrix instead",
    );
  if (Array.isArray(rest.algo_config) ? rest.algo_config.length > 0 : isFields(rest.algo_config))
    throw failure(
      'argument-invalid',
      'algo_config',
      'names algorithms already; leave it out, or do not ask for the best',
    );
  return {
    ...rest,
    global_quant_config: bestLayer(all),
    ...(layers !== undefined && { layer_quant_config: bestLayers(layers) }),
    ...(types !== undefined && { layer_type_quant_config: bestLayers(types) }),
    algo_config: [
      { name: 'awq', duo_scaling: true },
      { name: 'gptq', damp_percent: 0.05, refine: 2 },
    ],
  };
}
