// Configs as TypeScript types, by dialect. Keys and words are those of the core's tables (dist/schema/*.json, which a
// test compares with these). `null` means "not given" everywhere.

import type { QuantizationSpec } from './tensor_types.js';

/** A spec, or two that work one after the other. */
export type Stages = QuantizationSpec | QuantizationSpec[];

/** What is done to one layer, or to those that a pattern matches (Quark's QLayerConfig). */
export interface QuarkLayerConfig {
  weight?: Stages | null;
  /** Kept for the runtime where it is dynamic. */
  input_tensors?: Stages | null;
  output_tensors?: Stages | null;
  bias?: Stages | null;
  target_device?: 'cpu' | 'ipu' | null;
}

/** Class names that a config can say a layer has. */
export type LayerType =
  | 'Linear'
  | 'Embedding'
  | 'Conv1d'
  | 'Conv2d'
  | 'ConvTranspose2d'
  | 'EmbeddingBag'
  | 'Conv3d'
  | 'ConvTranspose1d'
  | 'ConvTranspose3d'
  | 'LSTM'
  | 'GRU'
  | 'RNN'
  | 'LayerNorm'
  | 'Norm';

/** What configs of every dialect may say besides. */
export interface CommonConfig {
  /** Where the JSON Schema is, for editors. */
  $schema?: string | null;
  /** Classes of layers whose names and shapes say something else, by exact name or pattern. */
  layer_types?: Record<string, LayerType> | null;
  /**
   * Whether layers that recipes leave alone stay as they are unless an entry names them: routers, convolutions, towers, state-space parameters,
   * heads... Presets say true; default false.
   */
  default_exclusions?: boolean | null;
  /** NaN and infinities in weights, and finite ones that would be stored as such: an error that names them (the default), or clamped. */
  non_finite?: 'error' | 'saturate' | null;
}

/** AMD Quark's QConfig, and a few keys of this library. */
export interface QuarkConfig extends CommonConfig {
  dialect?: 'quark' | null;
  /** For every layer that no other entry is for, except embeddings. */
  global_quant_config?: QuarkLayerConfig | null;
  /** By class. */
  layer_type_quant_config?: Record<string, QuarkLayerConfig> | null;
  /** By exact name, glob or `re:` pattern; exact names first, then the first pattern that matches. */
  layer_quant_config?: Record<string, QuarkLayerConfig> | null;
  /** Layers that stay as they are, and all below them. */
  exclude?: string[] | null;
  algo_config?: object | object[] | null;
  pre_quant_opt_config?: object | object[] | null;
  kv_cache_quant_config?: Record<string, QuarkLayerConfig> | null;
  kv_cache_group?: string[] | null;
  min_kv_scale?: number | null;
  kv_cache_post_rope?: boolean | null;
  shared_scale_groups?: string[][] | null;
  softmax_quant_spec?: Stages | null;
  quant_mode?: 'eager_mode' | 'fx_graph_mode' | null;
  quant_method?: 'quark' | null;
  export?: object | null;
  version?: string | null;
  log_severity_level?: number | null;
  sync_moe_expert_input_amax?: boolean | null;
  keep_prequantized_layers?: boolean | null;
  /** Each field from the first entry that has it (the default), or the first entry whole, as Quark's code does. */
  resolution?: 'field' | 'replace' | null;
  /** Groups that do not divide an axis: an error (the default), or smaller ones that do. */
  indivisible_groups?: 'error' | 'fallback' | null;
}

/** How aihwkit finds a range. */
export type RangeEstimator = 'current_minmax' | 'allminmax' | 'running_minmax' | 'MSE' | 'cross_entropy';

/** aihwkit's WeightQuantConfig. */
export interface AihwkitWeightConfig {
  /** 0, the default: not quantized. */
  n_bits?: number | null;
  symmetric?: boolean | null;
  per_channel?: boolean | null;
  range_estimator?: RangeEstimator | null;
  range_estimator_params?: object | null;
}

/** aihwkit's ActivationQuantConfig. */
export interface AihwkitActivationConfig {
  n_bits?: number | null;
  symmetric?: boolean | null;
  range_estimator?: RangeEstimator | null;
  range_estimator_params?: object | null;
}

/** aihwkit's QuantizationConfig. */
export interface AihwkitLayerConfig {
  weight_quant?: AihwkitWeightConfig | null;
  activation_quant?: AihwkitActivationConfig | null;
}

/** aihwkit's QuantizedModuleConfig. */
export interface AihwkitModuleConfig {
  /** Class of the quantized module, such as `QuantLinear`. */
  quantized_module?: string | null;
  module_qconfig?: AihwkitLayerConfig | null;
}

/** IBM aihwkit's QuantizationMap. */
export interface AihwkitConfig extends CommonConfig {
  dialect?: 'aihwkit' | null;
  default_qconfig?: AihwkitLayerConfig | null;
  /** By class, exactly. */
  module_qconfig_map?: Record<string, AihwkitModuleConfig> | null;
  /** By name, exactly. */
  instance_qconfig_map?: Record<string, AihwkitModuleConfig> | null;
  input_activation_qconfig_map?: Record<string, AihwkitActivationConfig> | null;
  excluded_modules?: string[] | null;
  /** Adds an entry with default_qconfig for Linear, LayerNorm, Embedding and Conv2d, where there is none. */
  append_default_conversions?: boolean | null;
}

/** A tensor of Quark's Brevitas extension. */
export interface BrevitasTensorConfig {
  qscheme?: 'per_tensor' | 'per_channel' | 'per_group' | 'per_block' | null;
  symmetric?: boolean | null;
  scale_type?: 'float' | 'pof2' | 'float32' | 'float16' | 'bfloat16' | null;
  quant_type?: 'int_quant' | 'float_quant' | null;
  param_type?: 'stats' | 'mse' | null;
  bit_width?: number | null;
  exponent_bit_width?: number | null;
  mantissa_bit_width?: number | null;
}

/** The layer config of Quark's Brevitas extension. */
export interface BrevitasLayerConfig {
  weight?: BrevitasTensorConfig | null;
  input_tensors?: BrevitasTensorConfig | null;
  output_tensors?: BrevitasTensorConfig | null;
  bias?: BrevitasTensorConfig | null;
}

/** The Config of Quark's Brevitas extension. */
export interface BrevitasConfig extends CommonConfig {
  dialect?: 'brevitas' | null;
  /** Which release's numbers. Default 0.12.1. */
  brevitas_version?: '0.12.1' | '0.10.3' | null;
  global_quant_config?: BrevitasLayerConfig | null;
  /** Brevitas' own default is [{ name: 'Preprocess' }]. */
  pre_quant_opt_config?: object[] | null;
  algo_config?: object[] | null;
  backend?: 'layerwise' | 'fx' | 'flexml' | null;
  exclude?: string[] | null;
}

/** A recipe for GGUF files, by llama.cpp's names, and exceptions. */
export interface GgufConfig {
  $schema?: string | null;
  dialect?: 'gguf' | null;
  /** `q4_k_m`, `q8_0`... */
  recipe: string;
  /** The recipe's main type throughout, as llama-quantize --pure. */
  pure?: boolean | null;
  /** Leaves output.weight as it is. */
  keep_output?: boolean | null;
  /** Types of output.weight and token_embd.weight. */
  output_type?: string | null;
  embedding_type?: string | null;
  /** Types by layer name or pattern, in the model's names or GGUF's; the first that matches counts. */
  layers?: Record<string, string> | null;
  exclude?: string[] | null;
  /** What changes float weights before they are stored: rotation, cle, smooth, awq... */
  pre_quant_opt_config?: object[] | null;
  algo_config?: object[] | null;
  non_finite?: 'error' | 'saturate' | null;
}
