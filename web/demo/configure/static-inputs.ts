// Layer inputs whose scales are fixed before the model runs: W8A8 for ONNX Runtime (QDQ).

type Config = Record<string, unknown>;
interface Spec {
  dtype?: string;
  qscheme?: string;
  is_dynamic?: boolean | null;
  observer_options?: { weighted?: boolean };
}

export type StaticDtype = 'uint8' | 'int8';

const inputSpecs: Record<StaticDtype, object> = {
  uint8: { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false },
  int8: { dtype: 'int8', qscheme: 'per_tensor', symmetric: true, is_dynamic: false },
};
const weightSpec = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };

const isObject = (value: unknown): value is Config => typeof value === 'object' && value !== null;

function specs(value: unknown): Spec[] {
  return (Array.isArray(value) ? value : [value]).filter(isObject);
}

/** Every layer config of a config in Quark's dialect. */
function layerConfigs(config: Config): Config[] {
  const tables = [config.layer_type_quant_config, config.layer_quant_config].filter(isObject);
  return [config.global_quant_config, ...tables.flatMap((table) => Object.values(table))].filter(isObject);
}

/** Whether a run of this config needs inputs or outputs of layers. */
export function needsActivations(config: Config): boolean {
  return layerConfigs(config).some(
    ({ weight, input_tensors, output_tensors }) =>
      [...specs(input_tensors), ...specs(output_tensors)].some((spec) => spec.is_dynamic !== true) ||
      specs(weight).some((spec) => spec.observer_options?.weighted === true),
  );
}

/** The inputs of all layers; null: not quantized; 'other': something else. */
export function staticInputs(config: Config): StaticDtype | 'other' | null {
  const { input_tensors } = isObject(config.global_quant_config) ? config.global_quant_config : {};
  const found = specs(input_tensors);
  if (found.length === 0) return null;
  const [spec] = found;
  const isUsual = found.length === 1 && spec && spec.is_dynamic !== true && spec.qscheme === 'per_tensor';
  return isUsual && (spec.dtype === 'uint8' || spec.dtype === 'int8') ? spec.dtype : 'other';
}

/** The config with or without static inputs. Weights in groups become int8 per channel: QDQ has no groups of 4 bits. */
export function withStaticInputs(config: Config, dtype: StaticDtype | null): Config {
  const { input_tensors: _, ...global } = isObject(config.global_quant_config) ? config.global_quant_config : {};
  if (dtype === null) return { ...config, global_quant_config: global };
  const isWhole = specs(global.weight).every(({ qscheme }) => qscheme === 'per_channel' || qscheme === 'per_tensor');
  const weight = global.weight && isWhole ? global.weight : weightSpec;
  return { ...config, global_quant_config: { ...global, weight, input_tensors: inputSpecs[dtype] } };
}
