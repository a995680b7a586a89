// The configs in which fields are tried, and values for fields whose schema does not list them. A field counts as
// applied if it changes what becomes of a model in one of them.

/** Layers that not every spec or format can hold. */
const unfit = ['conv', 'embed_tokens'];
const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };
const asymmetric = { dtype: 'uint8', symmetric: false };
const input8 = { dtype: 'int8', qscheme: 'per_tensor' };

/** In a context: the model, the format, what calibrates it. */
const inFloats = { model: 'layers', format: 'fake-quantized' };
const inQuark = { model: 'layers', format: 'quark', calibration: 'activations' };
const infinite = { model: 'infinite', format: 'fake-quantized' };
const inTransformer = { model: 'transformer', format: 'fake-quantized' };
const calibrated = { model: 'transformer', format: 'fake-quantized', calibration: 'tokens' };

const weights = [
  { dtype: 'int8' },
  { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 },
  { dtype: 'uint4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: false },
  { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 32 },
  { dtype: 'fp4', qscheme: 'per_group', ch_axis: -1, group_size: 32, scale_format: 'e8m0' },
  { dtype: 'fp8_e4m3', qscheme: 'per_block', block_size: [8, 8] },
  { dtype: 'mx', mx_element_dtype: 'fp8_e4m3' },
  { dtype: 'minifloat', exponent_bits: 4, mantissa_bits: 3 },
  { dtype: 'uint8', symmetric: false, observer_cls: 'PerTensorHistogramObserver', observer_options: {} },
  { dtype: 'int8', observer_cls: 'PerTensorPercentileObserver', observer_options: {} },
  { dtype: 'int8', observer_cls: 'PerTensorMSELastBinsObserver', observer_options: {} },
  { dtype: 'int8', observer_cls: 'PerTensorMSEObserver', observer_options: {} },
  { dtype: 'uint4', symmetric: false, grid: { smallest_scale: 20 } },
  { dtype: 'int8', observer_cls: 'PerTensorThresholdMSEObserver', observer_options: { search: 'grid' } },
  { dtype: 'int8', observer_cls: 'TQTObserver', qscheme: 'per_tensor' },
  { dtype: 'int4', observer_cls: 'PerTensorRangeMSEObserver', observer_options: { candidates: 10 } },
  {
    dtype: 'int4',
    observer_cls: 'PerTensorRangeMSEObserver',
    observer_options: { search: 'grid', candidates: 10, range_margin: 0.25 },
  },
  { dtype: 'int8', observer_cls: 'PerTensorCurrentMinMaxObserver', observer_options: {} },
  {
    dtype: 'uint4',
    symmetric: false,
    observer_cls: 'HQQObserver',
    qscheme: 'per_group',
    group_size: 32,
    ch_axis: -1,
    observer_options: {},
  },
  { dtype: 'uint8', grid: {} },
  { dtype: 'uint8', symmetric: false, grid: {} },
  { dtype: 'int8', grid: {} },
];
const inputs = [
  input8,
  { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false },
  { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
  { dtype: 'int8', qscheme: 'per_channel', ch_axis: -1 },
  { dtype: 'int8', qscheme: 'per_tensor', observer_cls: 'PerTensorPercentileObserver', observer_options: {} },
  { dtype: 'int8', qscheme: 'per_tensor', observer_cls: 'PerTensorMSELastBinsObserver', observer_options: {} },
  { dtype: 'int8', qscheme: 'per_tensor', observer_cls: 'PerTensorPowOf2MinMSEObserver', observer_options: {} },
  { dtype: 'int8', qscheme: 'per_tensor', observer_cls: 'PerTensorRunningMinMaxObserver', observer_options: {} },
  {
    dtype: 'int8',
    qscheme: 'per_tensor',
    observer_cls: 'PerTensorRangeMSEObserver',
    observer_options: { search: 'grid', candidates: 10 },
  },
  { dtype: 'int8', qscheme: 'per_tensor', observer_cls: 'PerTensorPowOf2MinMaxObserver', observer_options: {} },
  { dtype: 'fp4', qscheme: 'per_group', ch_axis: -1, group_size: 32, scale_format: 'e8m0', is_dynamic: true },
  { dtype: 'mx', mx_element_dtype: 'fp8_e4m3' },
];

const quark = [
  ...weights.map((weight) => ({ ...inFloats, config: { global_quant_config: { weight }, exclude: ['conv'] } })),
  ...inputs.map((spec) => ({
    ...inQuark,
    config: {
      global_quant_config: { weight: int8, input_tensors: spec, output_tensors: spec },
      exclude: ['conv', 'embed_tokens'],
    },
  })),
  { ...inQuark, model: 'experts', config: { global_quant_config: { weight: int8, input_tensors: input8 } } },
  {
    model: 'infinite',
    format: 'fake-quantized',
    config: { global_quant_config: { weight: int8 }, non_finite: 'saturate' },
  },
  {
    ...inFloats,
    config: {
      global_quant_config: { weight: { ...int8, qscheme: 'per_group', group_size: 48, ch_axis: -1 } },
      indivisible_groups: 'fallback',
    },
  },
  {
    ...inFloats,
    format: 'quark',
    config: { global_quant_config: { weight: { ...int8, dtype: 'int4' } }, exclude: [...unfit, 'c'], export: {} },
  },
  {
    ...inFloats,
    format: 'quark',
    config: { global_quant_config: { weight: { ...asymmetric, grid: {} } }, exclude: unfit },
  },
  {
    ...inFloats,
    format: 'quark',
    config: { global_quant_config: { weight: { ...asymmetric, grid: { smallest_scale: 20 } } }, exclude: unfit },
  },
  {
    ...inFloats,
    config: {
      global_quant_config: {
        weight: { dtype: 'int8', qscheme: 'per_group', ch_axis: -1, group_size: 48, grid: { pads_groups: true } },
      },
      exclude: unfit,
    },
  },
  {
    ...inFloats,
    config: { global_quant_config: { weight: int8 }, layer_quant_config: { 'a*': {} }, resolution: 'replace' },
  },
  { ...inQuark, config: { global_quant_config: { weight: int8, input_tensors: input8, bias: { dtype: 'int32' } } } },
  {
    ...inQuark,
    config: {
      global_quant_config: { weight: int8 },
      layer_type_quant_config: { Linear: { weight: asymmetric } },
      layer_quant_config: { 'a*': { weight: asymmetric } },
      exclude: unfit,
    },
  },
  {
    ...inQuark,
    config: {
      global_quant_config: { weight: int8 },
      kv_cache_quant_config: { b: { weight: asymmetric } },
      resolution: 'replace',
      exclude: unfit,
    },
  },
  {
    ...calibrated,
    format: 'quark',
    config: {
      global_quant_config: { weight: int8 },
      kv_cache_quant_config: { '*k_proj': { output_tensors: input8 }, '*v_proj': { output_tensors: input8 } },
    },
  },
  { ...inFloats, config: { global_quant_config: { weight: { ...int8, dtype: 'int4' } }, exclude: ['conv'] } },
  { ...inTransformer, config: { global_quant_config: { weight: { dtype: 'int8', qscheme: 'per_tensor' } } } },
  { model: 'norm', format: 'onnx', runsAlgorithms: true, config: { global_quant_config: { weight: int8 } } },
  { ...calibrated, config: { global_quant_config: { weight: { ...weights[3] } } } },
  {
    ...calibrated,
    config: { global_quant_config: { weight: { ...weights[2] }, input_tensors: { ...input8, is_dynamic: true } } },
  },
];

const brevitasWeight = { bit_width: 4, qscheme: 'per_channel' };
const brevitas = (global, rest = {}) => ({
  dialect: 'brevitas',
  pre_quant_opt_config: [],
  global_quant_config: global,
  ...rest,
});
const brevitasSpecs = [
  {},
  { bit_width: 8, exponent_bit_width: 4, mantissa_bit_width: 3 },
  { bit_width: 4, qscheme: 'per_channel' },
  { bit_width: 8, quant_type: 'float_quant', exponent_bit_width: 4, mantissa_bit_width: 3 },
  { bit_width: 7, quant_type: 'float_quant', exponent_bit_width: 4, mantissa_bit_width: 3 },
  { bit_width: 4, symmetric: false },
  { bit_width: 4, param_type: 'mse' },
  { bit_width: 4, scale_type: 'pof2' },
];

const aihwkitModule = (quant) => ({ Linear: { module_qconfig: { weight_quant: { n_bits: 8, ...quant } } } });
const aihwkitSpecs = [
  { n_bits: 8 },
  { n_bits: 4, symmetric: false },
  { n_bits: 4, range_estimator: 'MSE', range_estimator_params: { num_candidates: 10 } },
  {
    n_bits: 4,
    range_estimator: 'MSE',
    range_estimator_params: { range_opt_method: 'grid', num_candidates: 10, range_margin: 0.25 },
  },
  { n_bits: 8, range_estimator: 'running_minmax', range_estimator_params: {} },
  { n_bits: 8, range_estimator: 'current_minmax', range_estimator_params: {} },
];
const aihwkit = [
  { ...infinite, config: { dialect: 'aihwkit', module_qconfig_map: aihwkitModule(), non_finite: 'saturate' } },
  { ...inFloats, config: { dialect: 'aihwkit', default_qconfig: { weight_quant: { n_bits: 8 } } } },
  ...aihwkitSpecs.map((spec) => ({
    ...inFloats,
    config: {
      dialect: 'aihwkit',
      default_qconfig: { weight_quant: spec },
      append_default_conversions: true,
      module_qconfig_map: { Linear: { module_qconfig: { weight_quant: spec } } },
      instance_qconfig_map: { a: { quantized_module: 'QuantLinear', module_qconfig: { weight_quant: spec } } },
    },
  })),
  ...aihwkitSpecs.map((spec) => ({
    ...inQuark,
    config: {
      dialect: 'aihwkit',
      default_qconfig: { weight_quant: { n_bits: 8 }, activation_quant: spec },
      append_default_conversions: true,
      excluded_modules: [...unfit, 'c'],
      module_qconfig_map: { Linear: { module_qconfig: { weight_quant: { n_bits: 8 }, activation_quant: spec } } },
      instance_qconfig_map: {
        a: { module_qconfig: { weight_quant: { n_bits: 8 }, activation_quant: spec } },
      },
      input_activation_qconfig_map: { a: { ...spec } },
    },
  })),
  {
    ...inQuark,
    config: {
      dialect: 'aihwkit',
      default_qconfig: { weight_quant: { n_bits: 8 }, activation_quant: { n_bits: 8 } },
      append_default_conversions: true,
      layer_types: { norm: 'LayerNorm' },
      excluded_modules: [...unfit, 'a', 'b', 'c', 'lm_head'],
    },
  },
];

const arguments_ = [
  { num_bits: 8 },
  { num_bits: 4, strategy: 'group', group_size: 32 },
  { num_bits: 8, type: 'float', strategy: 'block', block_structure: [8, 8] },
  { num_bits: 4, type: 'float', strategy: 'group', group_size: 32 },
];
const compressedTensors = [
  ...arguments_.map((weight) => ({
    ...inFloats,
    config: { config_groups: { group_0: { targets: ['Linear'], weights: weight } }, ignore: ['lm_head'] },
  })),
  {
    ...infinite,
    config: { config_groups: { group_0: { targets: ['Linear'], weights: { num_bits: 8 } } }, non_finite: 'saturate' },
  },
  {
    ...inFloats,
    config: {
      config_groups: { group_0: { targets: ['Linear'], weights: { num_bits: 4, strategy: 'group', group_size: 48 } } },
      indivisible_groups: 'fallback',
    },
  },
  ...[{ num_bits: 8 }, { num_bits: 8, type: 'float' }, { num_bits: 8, dynamic: true, strategy: 'token' }].map(
    (spec) => ({
      ...inQuark,
      config: {
        config_groups: {
          group_0: {
            targets: ['Linear'],
            weights: { num_bits: 8, strategy: 'channel' },
            input_activations: spec,
            output_activations: spec,
          },
        },
      },
    }),
  ),
  {
    ...inQuark,
    config: {
      config_groups: { group_0: { targets: ['Linear'], weights: { num_bits: 8, strategy: 'channel' } } },
      kv_cache_scheme: { num_bits: 8, type: 'float' },
    },
  },
  {
    ...calibrated,
    format: 'compressed-tensors',
    config: {
      config_groups: { group_0: { targets: ['Linear'], weights: { num_bits: 8, strategy: 'channel' } } },
      kv_cache_scheme: { num_bits: 8, type: 'float' },
    },
  },
];

/** Per dialect: {model, format, calibration?, config}. */
export const contexts = {
  quark,
  brevitas: [
    ...brevitasSpecs.map((spec) => ({ ...inFloats, config: brevitas({ weight: spec }) })),
    ...brevitasSpecs.map((spec) => ({
      ...inQuark,
      config: brevitas({ weight: { bit_width: 8 }, input_tensors: spec, output_tensors: spec }, { exclude: unfit }),
    })),
    {
      ...inQuark,
      config: brevitas(
        { weight: { bit_width: 8 }, input_tensors: { bit_width: 8 }, bias: { bit_width: 32 } },
        { exclude: unfit },
      ),
    },
    { ...infinite, config: brevitas({ weight: { bit_width: 8 } }, { non_finite: 'saturate' }) },
    { model: 'norm', format: 'onnx', runsAlgorithms: true, config: brevitas({ weight: { bit_width: 8 } }) },
    { ...calibrated, config: brevitas({ weight: brevitasWeight }) },
    { ...calibrated, config: brevitas({ weight: brevitasWeight, input_tensors: { bit_width: 8 } }) },
  ],
  aihwkit,
  'compressed-tensors': compressedTensors,
  gptq: [
    {
      ...inTransformer,
      config: { quant_method: 'gptq', bits: 4, group_size: 32, dynamic: { '+:.*q_proj$': { bits: 8 } } },
    },
    {
      ...inTransformer,
      config: { quant_method: 'gptq', bits: 4, sym: false, checkpoint_format: 'gptq_v2', group_size: 16 },
    },
    { ...inTransformer, config: { quant_method: 'gptq', bits: 4, group_size: 48, indivisible_groups: 'fallback' } },
    { ...infinite, config: { quant_method: 'gptq', bits: 4, group_size: 32, non_finite: 'saturate' } },
    { ...inFloats, config: { quant_method: 'gptq', bits: 4, group_size: -1, sym: false } },
  ],
  awq: [
    { ...inTransformer, config: { quant_method: 'awq', bits: 4, group_size: 32 } },
    { ...inTransformer, config: { quant_method: 'awq', w_bit: 4, q_group_size: 32 } },
    { ...inTransformer, config: { quant_method: 'awq', bits: 4, group_size: 48, indivisible_groups: 'fallback' } },
    { ...infinite, config: { quant_method: 'awq', bits: 4, group_size: 32, non_finite: 'saturate' } },
    { ...inFloats, config: { quant_method: 'awq', bits: 4, group_size: -1 } },
  ],
  fp8: [
    { ...inFloats, config: { quant_method: 'fp8' } },
    { ...inQuark, config: { quant_method: 'fp8', modules_to_not_convert: unfit } },
    { ...infinite, config: { quant_method: 'fp8', non_finite: 'saturate' } },
    {
      ...inQuark,
      config: {
        quant_method: 'fp8',
        activation_scheme: 'dynamic',
        weight_block_size: [8, 8],
        modules_to_not_convert: unfit,
      },
    },
  ],
  gguf: [
    { model: 'sample', format: 'gguf', config: { dialect: 'gguf', recipe: 'q4_0' } },
    { model: 'infiniteSample', format: 'gguf', config: { dialect: 'gguf', recipe: 'q8_0', non_finite: 'saturate' } },
    { model: 'sample', format: 'gguf', calibration: 'tokens', config: { dialect: 'gguf', recipe: 'q4_0' } },
  ],
};

const scalingLayers = [
  {
    prev_op: 'input_layernorm',
    layers: ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'],
    inp: 'self_attn.q_proj',
  },
];
const rotationLayers = { first_layer: [], middle_layers: [], last_layer: [] };

/** What an algorithm has before its fields are tried: each of several. */
export const algorithms = {
  rotation: [
    { scaling_layers: rotationLayers, r2: true },
    { scaling_layers: rotationLayers, random_r1: true },
  ],
  quarot: [
    { scaling_layers: rotationLayers, r3: false },
    { scaling_layers: rotationLayers, r3: false, random_r1: true },
  ],
  activationequalization: [{ is_layerwise: false }],
  Preprocess: [{}, { equalize_iterations: 0 }],
};

/** Values by the field's name, or by `algorithm.field`. */
export const valuesByName = {
  activation_scheme: ['static', 'dynamic'],
  algo_config: [[{ name: 'gptq' }]],
  'rotation.scaling_layers': [{ ...rotationLayers, middle_layers: [{ prev_modules: ['x'] }] }],
  alpha: [0.25, 0.75],
  beta: [10],
  bit: [2, 4],
  bit_width: [2, 3, 16],
  bits: [2, 3, 8],
  w_bit: [8],
  q_group_size: [64],
  block_size: [64, [16, 4]],
  block_structure: [[16, 4]],
  brevitas_version: ['0.10.3', '0.13'],
  ch_axis: [0, 1, -1, -2],
  compute_scale_loss: ['MAE', 'RMSE'],
  dynamic: [{ '-:.*k_proj$': {} }, true],
  embedding_layers: [['model.embed_tokens']],
  embedding_type: ['q8_0'],
  exclude: [
    ['a', 'conv'],
    ['conv', 'model.layers.0*'],
  ],
  excluded_modules: [['a']],
  exponent_bit_width: [3, 5],
  exponent_bits: [3, 5],
  first_candidate: [-4, 2],
  default_qconfig: [{ weight_quant: { n_bits: 3 } }],
  global_quant_config: [{ weight: { dtype: 'int4' } }, { weight: { bit_width: 3 } }],
  group_size: [16, 64, -1],
  // "float8_e4m3fn" is another name of "e4m3".
  fmt: ['x'],
  ignore: [['re:a.*'], ['b']],
  ignored_layers: [['b']],
  input_activation_qconfig_map: [{ a: { n_bits: 8 } }],
  instance_qconfig_map: [{ b: { module_qconfig: { weight_quant: { n_bits: 3 } } } }],
  inside_layer_modules: [['self_attn.q_proj']],
  kv_cache_group: [['*k_proj', '*v_proj']],
  kv_cache_quant_config: [{ '*k_proj': { output_tensors: input8 } }],
  kv_cache_scheme: [{ num_bits: 8, type: 'float' }],
  layer_quant_config: [{ a: { weight: { dtype: 'int4' } } }],
  layer_type_quant_config: [{ Linear: { weight: { dtype: 'int4' } } }],
  layer_types: [{ a: 'Embedding', 'model.layers.0.self_attn.q_proj': 'Embedding' }],
  layers: [{ '*.q_proj.weight': 'q8_0', '*.q_proj': 'q8_0' }, { '*q_proj*': 'q8_0' }],
  mantissa_bit_width: [2, 4],
  mantissa_bits: [2, 4],
  max_input_numel: [100],
  min_kv_scale: [0.5],
  module_qconfig_map: [{ Linear: { module_qconfig: { weight_quant: { n_bits: 3 } } } }],
  modules_to_not_convert: [['b', 'q_proj']],
  momentum: [0.25],
  range_estimator_params: [{ percentile: 10 }, { momentum: 0.5 }, { num_candidates: 7 }],
  mx_element_dtype: ['fp8_e5m2', 'int8'],
  n_bits: [2, 3, 16],
  norm: [0.4],
  num_bits: [4, 2],
  non_finite: ['error', 'saturate'],
  observer: ['mse'],
  observer_cls: ['PerTensorMSEObserver', 'PerChannelMSEObserver', 'PerGroupMSEObserver', 'PerTensorPercentileObserver'],
  output_type: ['q8_0'],
  pads_groups: [true, false],
  percentile: [60, 99],
  pre_quant_opt_config: [[{ name: 'smooth' }], [{ name: 'Preprocess' }]],
  qat_spec: [{ threshold_init_meth: '_KL_J' }],
  quantized_module: ['QuantConv2d', 'MyQuantLinear'],
  rotation_size: [16, 32],
  scale_dtype: ['torch.uint8'],
  scale_fmt: ['ue8m0'],
  scaling_layers: [scalingLayers],
  shared_scale_groups: [[['q_proj', 'k_proj']]],
  softmax_quant_spec: [input8],
  sparsity_config: [{ format: 'dense' }],
  transform_config: [{ config_groups: {} }],
  targets: [['Conv2d'], ['re:.*a$']],
  weight_block_size: [[16, 4]],
};

/** Values for the types of a field that none of the above names. */
export const valuesByType = {
  integer: [0, 1, 2, 3, 16, 1000],
  number: [0, 0.25, 0.75, 2, 1000],
  string: ['x'],
  array: [['x']],
  object: [{ x: 1 }],
};

/** What a spec is tried as where a field takes a whole one. */
export const specs = {
  quark: [{ ...input8 }, int8, { dtype: 'int4' }, { dtype: 'int32' }],
  brevitas: [{ bit_width: 8 }, { bit_width: 4 }, { bit_width: 32 }],
  aihwkit: [{ n_bits: 8 }, { n_bits: 4 }],
  'compressed-tensors': [{ num_bits: 8 }, { num_bits: 4 }],
};

/** The default config of an entry of a map of layers or modules. */
export const layerValues = {
  quark: [{ weight: { dtype: 'int4' } }],
  brevitas: [{ weight: { bit_width: 2 } }],
  aihwkit: [{ weight_quant: { n_bits: 4 } }],
  aihwkitModule,
};
