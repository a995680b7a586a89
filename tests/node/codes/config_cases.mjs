// For each code of a config: a config that has it.

export const weight = (rest = {}) => ({ dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true, ...rest });
export const group = (rest = {}) =>
  weight({ dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, ...rest });
export const quark = (spec, rest = {}) => ({ global_quant_config: { weight: spec }, ...rest });
const brevitas = (rest = {}) => ({
  dialect: 'brevitas',
  global_quant_config: { weight: { bit_width: 8 } },
  pre_quant_opt_config: [],
  ...rest,
});
const linear = { Linear: { module_qconfig: { weight_quant: { n_bits: 8 } } } };
const grid = { range_opt_method: 'grid' };
const layers = { first_layer: [], middle_layers: [], last_layer: [] };
const rotation = { name: 'rotation', scaling_layers: layers, r3: true };

/** A config that has the diagnostic. */
export const configs = {
  contradiction: { global_quant_config: { weight: group() }, algo_config: [{ name: 'awq', bit: 8 }] },
  'key-unknown': quark(weight({ dtpe: 1 })),
  'key-missing': quark({ dtype: 'mx', qscheme: 'per_group', group_size: 32 }),
  'key-conflict': quark(weight(), { layer_type_quant_config: { Linear: {}, 'nn.Linear': {} } }),
  'type-invalid': quark(7),
  'value-invalid': quark(group({ group_size: -7 })),
  'value-unknown': quark(weight({ dtype: 'int99' })),
  'preset-unknown': 'int4_wo_127',
  'pattern-invalid': quark(weight(), { exclude: ['re:('] }),
  'observer-mismatch': quark(weight({ observer_cls: 'PerTensorMinMaxObserver' })),
  'combination-unsupported': brevitas({
    global_quant_config: {
      weight: { quant_type: 'float_quant', symmetric: false, exponent_bit_width: 4, mantissa_bit_width: 3 },
    },
  }),
  'config-foreign': { quant_algo: 'FP8' },
  'too-many-problems': quark(weight(), { exclude: Array.from({ length: 300 }, () => 7) }),
  'key-ignored': quark(weight({ dtype: 'bfloat16', scale_type: 'float' })),
  'no-effect': brevitas({ pre_quant_opt_config: [{ name: 'Preprocess', trace_model: false }] }),
  'not-applied': { quant_method: 'gptq', bits: 4 },
  'symmetric-unsigned': quark(weight({ dtype: 'uint8' })),
  'zero-point-range': quark(group({ symmetric: false, zero_point_type: 'float32' })),
  'per-channel-ignored': {
    module_qconfig_map: {
      Linear: {
        module_qconfig: {
          weight_quant: {
            n_bits: 8,
            per_channel: true,
            range_estimator: 'cross_entropy',
            range_estimator_params: grid,
          },
        },
      },
    },
  },
  'names-matched-exactly': { module_qconfig_map: linear, excluded_modules: ['a.*'] },
  'default-has-no-effect': { default_qconfig: { weight_quant: { n_bits: 8 } } },
  'default-preprocess': { dialect: 'brevitas', global_quant_config: { weight: { bit_width: 8 } } },
  'preprocess-order': brevitas({ pre_quant_opt_config: [{ name: 'ActivationEqualization' }, { name: 'Preprocess' }] }),
  'equalization-folded': brevitas({
    pre_quant_opt_config: [{ name: 'Preprocess' }, { name: 'ActivationEqualization' }],
  }),
  'bias-format': { global_quant_config: { weight: weight(), bias: weight({ qscheme: 'per_tensor' }) } },
  'needs-calibration': brevitas({ global_quant_config: { weight: { bit_width: 8 }, input_tensors: {} } }),
  'rotation-kv-cache': quark(weight(), {
    algo_config: [rotation],
    kv_cache_quant_config: { '*k_proj': { output_tensors: { dtype: 'fp8_e4m3' } } },
  }),
  'nothing-quantized': { global_quant_config: { input_tensors: weight({ qscheme: 'per_tensor' }) } },
  'json-invalid': '{',
  'dtype-unsupported': quark(weight({ dtype: 'uint16' })),
  'not-implemented': brevitas({ pre_quant_opt_config: [{ name: 'Preprocess', channel_splitting_ratio: 0.1 }] }),
};
