// Config types by dialect, as in the core's tables (dist/schema/*.json; tested). `null` means "not given" everywhere.

import type { QuantizationSpec } from './tensor_types.js';

/** One spec, or two stages applied in order. */
export type Stages = QuantizationSpec | QuantizationSpec[];

/** Config of one layer or of all that match a pattern (Quark's QLayerConfig). */
export interface QuarkLayerConfig {
  /** How the weight is quantized. */
  weight?: Stages | null;
  /** Input quantization, left to the runtime if dynamic. */
  input_tensors?: Stages | null;
  /** Static outputs, stored with scales from calibration. */
  output_tensors?: Stages | null;
  /** Accepted; biases are not quantized. */
  bias?: Stages | null;
  /** Accepted and ignored. */
  target_device?: 'cpu' | 'ipu' | null;
}

/** Class names a config can assign to layers. */
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

/** Keys that every dialect accepts. */
export interface CommonConfig {
  /** Address of the JSON Schema, for editors. */
  $schema?: string | null;
  /** Layer classes by exact name or pattern, overriding those inferred from names and shapes. */
  layer_types?: Record<string, LayerType> | null;
  /** Excludes layers that recipes skip (routers, convolutions, towers, heads...) unless named. Default false. */
  default_exclusions?: boolean | null;
  /** NaN, infinities and overflows in weights: an error naming them (the default), or clamped. */
  non_finite?: 'error' | 'saturate' | null;
}

/** AMD Quark's QConfig, with some keys of this library. */
export interface QuarkConfig extends CommonConfig {
  /** Names the dialect; recognised from the keys if missing. */
  dialect?: 'quark' | null;
  /** For every layer without another entry, except embeddings. */
  global_quant_config?: QuarkLayerConfig | null;
  /** By class. */
  layer_type_quant_config?: Record<string, QuarkLayerConfig> | null;
  /** By exact name, glob or `re:` pattern; exact names first, then the first matching pattern. */
  layer_quant_config?: Record<string, QuarkLayerConfig> | null;
  /** Layers to leave unquantized, with everything below them. */
  exclude?: string[] | null;
  /** Algorithms in order, such as `awq` or `gptq` (guide "Calibrate"). */
  algo_config?: object | object[] | null;
  /** Transformations before quantization, such as `rotation` or `smoothquant` (guide "Calibrate"). */
  pre_quant_opt_config?: object | object[] | null;
  /** Written to quark files for the runtime; the key-value cache is not quantized here. */
  kv_cache_quant_config?: Record<string, QuarkLayerConfig> | null;
  /** Accepted for Quark; not applied. */
  kv_cache_group?: string[] | null;
  /** Accepted for Quark; not applied. */
  min_kv_scale?: number | null;
  /** True: keys are cached behind the rotary embedding, for which files of quark have no scales. */
  kv_cache_post_rope?: boolean | null;
  /**
   * Endings of the names of layers of one module that share the scale of the whole tensor: the second scale of NVFP4,
   * and scales per tensor. Left out: second scales are shared by the layers that vLLM joins. `[]`: none are.
   */
  shared_scale_groups?: string[][] | null;
  /** Accepted for Quark; a spec is refused: attention probabilities are quantized where the model runs. */
  softmax_quant_spec?: Stages | null;
  /** Accepted for Quark; no effect. */
  quant_mode?: 'eager_mode' | 'fx_graph_mode' | null;
  /** As in the `quantization_config` of quark models. */
  quant_method?: 'quark' | null;
  /** Export settings, such as `pack_method`. */
  export?: object | null;
  /** Version of Quark that wrote the config; no effect. */
  version?: string | null;
  /** Accepted for Quark; no effect. */
  log_severity_level?: number | null;
  /** Experts share the largest static input scale of their projection. */
  sync_moe_expert_input_amax?: boolean | null;
  /** Accepted for Quark; false is refused: what is quantized already keeps its codes. */
  keep_prequantized_layers?: boolean | null;
  /** `field`: each field from the first entry that has it (default); `replace`: the whole first entry, as Quark's code.
   */
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
  /** Symmetric range without zero point. */
  symmetric?: boolean | null;
  /** One scale per output channel instead of one per tensor. */
  per_channel?: boolean | null;
  /** How the range is found. */
  range_estimator?: RangeEstimator | null;
  /** Options of the estimator, as in aihwkit. */
  range_estimator_params?: object | null;
}

/** aihwkit's ActivationQuantConfig. */
export interface AihwkitActivationConfig {
  /** Bits; 0, the default: not quantized. */
  n_bits?: number | null;
  /** Symmetric range without zero point. */
  symmetric?: boolean | null;
  /** How the range is found. */
  range_estimator?: RangeEstimator | null;
  /** Options of the estimator, as in aihwkit. */
  range_estimator_params?: object | null;
}

/** aihwkit's QuantizationConfig. */
export interface AihwkitLayerConfig {
  /** How the weight is quantized. */
  weight_quant?: AihwkitWeightConfig | null;
  /** How the output is quantized; needs calibration. */
  activation_quant?: AihwkitActivationConfig | null;
}

/** aihwkit's QuantizedModuleConfig. */
export interface AihwkitModuleConfig {
  /** Class of the quantized module, such as `QuantLinear`. */
  quantized_module?: string | null;
  /** Config of the layer. */
  module_qconfig?: AihwkitLayerConfig | null;
}

/** IBM aihwkit's QuantizationMap. */
export interface AihwkitConfig extends CommonConfig {
  /** Names the dialect; recognised from the keys if missing. */
  dialect?: 'aihwkit' | null;
  /** Config of classes without their own entry. */
  default_qconfig?: AihwkitLayerConfig | null;
  /** By exact class name. */
  module_qconfig_map?: Record<string, AihwkitModuleConfig> | null;
  /** By exact layer name. */
  instance_qconfig_map?: Record<string, AihwkitModuleConfig> | null;
  /** Accepted; inputs are not quantized. */
  input_activation_qconfig_map?: Record<string, AihwkitActivationConfig> | null;
  /** Layers to leave unquantized, by exact name. */
  excluded_modules?: string[] | null;
  /** Adds default_qconfig for Linear, LayerNorm, Embedding and Conv2d if they have no entry. */
  append_default_conversions?: boolean | null;
}

/** A tensor of Quark's Brevitas extension. */
export interface BrevitasTensorConfig {
  /** Elements that share a scale. */
  qscheme?: 'per_tensor' | 'per_channel' | 'per_group' | 'per_block' | null;
  /** Symmetric range without zero point. */
  symmetric?: boolean | null;
  /** Type of the scales. */
  scale_type?: 'float' | 'pof2' | 'float32' | 'float16' | 'bfloat16' | null;
  /** Integers or minifloats. */
  quant_type?: 'int_quant' | 'float_quant' | null;
  /** How the range is found: statistics or least squared error. */
  param_type?: 'stats' | 'mse' | null;
  /** Bits of an element. */
  bit_width?: number | null;
  /** Exponent bits of a minifloat. */
  exponent_bit_width?: number | null;
  /** Mantissa bits of a minifloat. */
  mantissa_bit_width?: number | null;
}

/** The layer config of Quark's Brevitas extension. */
export interface BrevitasLayerConfig {
  /** How the weight is quantized. */
  weight?: BrevitasTensorConfig | null;
  /** How inputs are quantized; needs calibration. */
  input_tensors?: BrevitasTensorConfig | null;
  /** How outputs are quantized; needs calibration. */
  output_tensors?: BrevitasTensorConfig | null;
  /** Accepted; biases are not quantized. */
  bias?: BrevitasTensorConfig | null;
}

/** The Config of Quark's Brevitas extension. */
export interface BrevitasConfig extends CommonConfig {
  /** Names the dialect; recognised from the keys if missing. */
  dialect?: 'brevitas' | null;
  /** The release whose numbers are used. Default 0.12.1. */
  brevitas_version?: '0.13' | '0.12.1' | '0.10.3' | null;
  /** Config of every layer. */
  global_quant_config?: BrevitasLayerConfig | null;
  /** Brevitas' own default is [{ name: 'Preprocess' }]. */
  pre_quant_opt_config?: object[] | null;
  /** Algorithms in order: `GPTQ`, `GPFQ`, `BiasCorrection`. */
  algo_config?: object[] | null;
  /** Accepted; no effect. */
  backend?: 'layerwise' | 'fx' | 'flexml' | null;
  /** Layers to leave unquantized. */
  exclude?: string[] | null;
}

/** A recipe for GGUF files, named as in llama.cpp, with exceptions. */
export interface GgufConfig {
  /** Address of the JSON schema, for editors. */
  $schema?: string | null;
  /** Optional: implied by `recipe`. */
  dialect?: 'gguf' | null;
  /** `q4_k_m`, `q8_0`... */
  recipe: string;
  /** The recipe's main type throughout, as llama-quantize --pure. */
  pure?: boolean | null;
  /** Keeps the dtype of output.weight. */
  keep_output?: boolean | null;
  /** GGUF type of output.weight, such as `q6_k`. */
  output_type?: string | null;
  /** GGUF type of token_embd.weight. */
  embedding_type?: string | null;
  /** Types by layer name or pattern, in model or GGUF naming; the first match counts. */
  layers?: Record<string, string> | null;
  /** Names or patterns of layers to leave unquantized. */
  exclude?: string[] | null;
  /** Changes to float weights before quantization: rotation, cle, smooth, awq... */
  pre_quant_opt_config?: object[] | null;
  /** Algorithms such as `awq` or `gptq`, in order. */
  algo_config?: object[] | null;
  /** NaN and infinite weights: an error (the default), or replaced by 0 and the largest finite value. */
  non_finite?: 'error' | 'saturate' | null;
}
