// The classes and fields of the tools' own documentation, in its order, with the defaults that it states, and where a
// config has the field. `note` says what is to know beyond the outcome, which is found by trying (probe.mjs).

const quark = (path) => ({ dialect: 'quark', path });
const spec = (field) => quark(`global_quant_config.weight.${field}`);
const layer = (field) => quark(`global_quant_config.${field}`);
const algorithm = (name, field) => quark(`algo_config.[${name}].${field}`);
const brevitas = (path) => ({ dialect: 'brevitas', path });
const brevitasSpec = (field) => brevitas(`global_quant_config.weight.${field}`);
const before = (name, field) => brevitas(`pre_quant_opt_config.[${name}].${field}`);
const after = (name, field) => brevitas(`algo_config.[${name}].${field}`);
const aihwkit = (path) => ({ dialect: 'aihwkit', path });
const weightQuant = (field) => aihwkit(`module_qconfig_map.*.module_qconfig.weight_quant.${field}`);
const activationQuant = (field) => aihwkit(`module_qconfig_map.*.module_qconfig.activation_quant.${field}`);

/** [field, documented default, place, note] */
export const documents = [
  {
    title: 'AMD Quark: `Config` (now `QConfig`)',
    rows: [
      ['global_quant_config', 'required', quark('global_quant_config'), 'optional if a layer or a class has a config'],
      [
        'layer_type_quant_config',
        '{}',
        quark('layer_type_quant_config'),
        '`Linear`, `nn.Linear`, `Dense`, `Conv2D`, `<class …>` and more classes than Quark reads',
      ],
      [
        'layer_quant_config',
        '{}',
        quark('layer_quant_config'),
        'exact names come before patterns, of which the first counts',
      ],
      ['exclude', '[]', quark('exclude'), 'names with everything below them, globs and `re:` expressions'],
      ['algo_config', 'None', quark('algo_config'), 'an object or a list'],
      ['pre_quant_opt_config', '[]', quark('pre_quant_opt_config'), 'an object or a list'],
      ['kv_cache_quant_config', '{}', quark('kv_cache_quant_config'), ''],
      ['kv_cache_group', '[]', quark('kv_cache_group'), ''],
      ['min_kv_scale', '0.0', quark('min_kv_scale'), ''],
      ['quant_mode', '`eager_mode`', quark('quant_mode'), 'weight files have no graph'],
      ['log_severity_level', '1', quark('log_severity_level'), ''],
      ['version', 'that of Quark', quark('version'), ''],
    ],
  },
  {
    title: 'AMD Quark: `QuantizationConfig` (now `QLayerConfig`)',
    rows: [
      ['input_tensors', 'None', layer('input_tensors'), 'static scales come from calibration'],
      ['output_tensors', 'None', layer('output_tensors'), 'static scales come from calibration'],
      ['weight', 'None', layer('weight'), 'one spec or two stages'],
      ['bias', 'None', layer('bias'), ''],
      ['target_device', 'None', layer('target_device'), '`CPU`, `GPU` and `IPU`, in any case'],
    ],
  },
  {
    title: 'AMD Quark: `QuantizationSpec` (now `QTensorConfig`)',
    rows: [
      ['dtype', 'required', spec('dtype'), '`Dtype.int4`, `INT4` and `int4` are one'],
      ['observer_cls', 'None', spec('observer_cls'), 'a class name or a module path'],
      ['is_dynamic', 'None', spec('is_dynamic'), 'applied only to inputs and outputs'],
      ['qscheme', 'None', spec('qscheme'), '`per_tensor` by default'],
      ['ch_axis', 'None', spec('ch_axis'), 'by default 0 for per_channel, -1 for per_group'],
      ['group_size', 'None', spec('group_size'), '-1 is the whole axis'],
      ['symmetric', 'None', spec('symmetric'), 'true by default for signed dtypes'],
      ['round_method', 'None', spec('round_method'), '`floor` and `round` are applied on CPUs, unlike in Quark'],
      ['scale_type', 'None', spec('scale_type'), '`pof2` needs a PowOf2 observer, as in Quark'],
      ['scale_format', 'None', spec('scale_format'), ''],
      ['scale_calculation_mode', 'None', spec('scale_calculation_mode'), '`even` by default'],
      ['block_size', 'None', spec('block_size'), 'of qscheme per_block'],
      ['mx_element_dtype', 'None', spec('mx_element_dtype'), 'of dtype mx'],
      ['zero_point_type', '`int32`', spec('zero_point_type'), ''],
      ['is_scale_quant', 'False', spec('is_scale_quant'), 'of the second of two stages'],
      ['qat_spec', 'None', spec('qat_spec'), 'only the start of TQT’s threshold'],
      ['enable_buffer_reuse', 'False', spec('enable_buffer_reuse'), ''],
      ['max_input_numel', '4194304', spec('max_input_numel'), ''],
    ],
  },
  {
    title: 'AMD Quark: `AWQConfig`',
    rows: [
      ['scaling_layers', 'None', algorithm('awq', 'scaling_layers'), 'by default those of the model’s blocks'],
      ['model_decoder_layers', 'None', algorithm('awq', 'model_decoder_layers'), 'blocks are found in the model'],
      ['embedding_layers', 'None', algorithm('awq', 'embedding_layers'), ''],
      ['algo_processor', 'None', algorithm('awq', 'algo_processor'), ''],
      ['bit', '4', algorithm('awq', 'bit'), 'has to equal that of the weight’s spec'],
      ['sym', 'False', algorithm('awq', 'sym'), 'has to equal that of the weight’s spec'],
      ['group_size', '128', algorithm('awq', 'group_size'), 'has to equal that of the weight’s spec'],
    ],
  },
  {
    title: 'AMD Quark: `GPTQConfig`',
    rows: [
      ['block_size', '128', algorithm('gptq', 'block_size'), 'columns are rounded one by one here'],
      ['damp_percent', '0.01', algorithm('gptq', 'damp_percent'), ''],
      ['desc_act', 'True', algorithm('gptq', 'desc_act'), ''],
      [
        'static_groups',
        'False (True in Quark 0.13)',
        algorithm('gptq', 'static_groups'),
        'false with `desc_act` is act-order with `g_idx`',
      ],
      ['true_sequential', 'True', algorithm('gptq', 'true_sequential'), ''],
      [
        'inside_layer_modules',
        'None',
        algorithm('gptq', 'inside_layer_modules'),
        'by default all linear layers of a block',
      ],
      ['model_decoder_layers', 'None', algorithm('gptq', 'model_decoder_layers'), 'blocks are found in the model'],
      ['embedding_layers', 'None', algorithm('gptq', 'embedding_layers'), ''],
      ['bit, sym, group_size', '4, False, 128', algorithm('gptq', 'bit'), 'has to equal that of the weight’s spec'],
    ],
  },
  {
    title: 'AMD Quark: `SmoothQuantConfig`',
    rows: [
      ['alpha', '1', algorithm('smoothquant', 'alpha'), ''],
      ['scale_clamp_min', '1e-3', algorithm('smoothquant', 'scale_clamp_min'), ''],
      ['scaling_layers', 'None', algorithm('smoothquant', 'scaling_layers'), 'by default those of the model’s blocks'],
      [
        'model_decoder_layers',
        'None',
        algorithm('smoothquant', 'model_decoder_layers'),
        'blocks are found in the model',
      ],
      ['embedding_layers', 'None', algorithm('smoothquant', 'embedding_layers'), ''],
    ],
  },
  {
    title: 'Quark’s Brevitas extension: `Config`',
    rows: [
      ['global_quant_config', 'required', brevitas('global_quant_config'), ''],
      [
        'pre_quant_opt_config',
        '[Preprocess()]',
        brevitas('pre_quant_opt_config'),
        'left out: a warning, and nothing is done before',
      ],
      ['algo_config', '[]', brevitas('algo_config'), ''],
      ['backend', '`layerwise`', brevitas('backend'), 'the only one of the extension'],
    ],
  },
  {
    title: 'Quark’s Brevitas extension: `QuantizationConfig` and `QuantizationSpec`',
    rows: [
      ['input_tensors', 'None', brevitas('global_quant_config.input_tensors'), 'static scales come from calibration'],
      ['output_tensors', 'None', brevitas('global_quant_config.output_tensors'), 'static scales come from calibration'],
      ['weight', 'None', brevitas('global_quant_config.weight'), ''],
      ['bias', 'None', brevitas('global_quant_config.bias'), 'needs `input_tensors`'],
      ['qscheme', '`per_tensor`', brevitasSpec('qscheme'), ''],
      ['symmetric', 'True', brevitasSpec('symmetric'), ''],
      ['scale_type', '`float`', brevitasSpec('scale_type'), ''],
      ['quant_type', '`int_quant`', brevitasSpec('quant_type'), ''],
      ['param_type', '`stats`', brevitasSpec('param_type'), ''],
      ['bit_width', '8', brevitasSpec('bit_width'), ''],
      ['exponent_bit_width', 'None', brevitasSpec('exponent_bit_width'), 'of float_quant'],
      ['mantissa_bit_width', 'None', brevitasSpec('mantissa_bit_width'), 'of float_quant'],
    ],
  },
  {
    title: 'Quark’s Brevitas extension: algorithms',
    rows: [
      ['Preprocess.trace_model', 'True', before('Preprocess', 'trace_model'), ''],
      ['Preprocess.equalize_iterations', '20', before('Preprocess', 'equalize_iterations'), ''],
      ['Preprocess.equalize_merge_bias', 'True', before('Preprocess', 'equalize_merge_bias'), ''],
      [
        'Preprocess.merge_batch_norm',
        'True',
        before('Preprocess', 'merge_batch_norm'),
        'folded in ONNX models, which say what follows what',
      ],
      ['Preprocess.channel_splitting_ratio', '0.0', before('Preprocess', 'channel_splitting_ratio'), ''],
      ['Preprocess.channel_splitting_split_input', 'False', before('Preprocess', 'channel_splitting_split_input'), ''],
      [
        'ActivationEqualization.is_layerwise',
        'True',
        before('ActivationEqualization', 'is_layerwise'),
        'the scales are folded into the layer that produces the input',
      ],
      ['ActivationEqualization.alpha', '0.5', before('ActivationEqualization', 'alpha'), ''],
      ['GPTQ.act_order', 'False', after('GPTQ', 'act_order'), ''],
      ['GPFQ.act_order', 'False', after('GPFQ', 'act_order'), ''],
      ['GPFQ.percentage_of_processed_inputs', '1.0', after('GPFQ', 'percentage_of_processed_inputs'), ''],
      ['GPFA2Q.accumulator_bit_width', '16', after('GPFA2Q', 'accumulator_bit_width'), ''],
    ],
  },
  {
    title: 'IBM aihwkit: `QuantizationMap`',
    rows: [
      [
        'default_qconfig',
        'QuantizationConfig()',
        aihwkit('default_qconfig'),
        'a template for `append_default_conversions`, nothing by itself',
      ],
      ['module_qconfig_map', '{}', aihwkit('module_qconfig_map'), 'only classes that weight files have'],
      ['instance_qconfig_map', '{}', aihwkit('instance_qconfig_map'), '`quantized_module` says the class of a norm'],
      [
        'input_activation_qconfig_map',
        '{}',
        aihwkit('input_activation_qconfig_map'),
        'only of layers with quantized weights',
      ],
      ['excluded_modules', '[]', aihwkit('excluded_modules'), 'exact names, and all below them'],
      ['append_default_conversions', 'a function', aihwkit('append_default_conversions'), '`true` calls it'],
    ],
  },
  {
    title: 'IBM aihwkit: `WeightQuantConfig`, `ActivationQuantConfig`',
    rows: [
      ['n_bits', '0', weightQuant('n_bits'), '0 and less: off'],
      ['symmetric', 'True', weightQuant('symmetric'), ''],
      ['per_channel', 'False', weightQuant('per_channel'), 'of weights'],
      ['range_estimator', '`current_minmax`', weightQuant('range_estimator'), 'of activations: `running_minmax`'],
      ['range_estimator_params', 'those of the estimator', weightQuant('range_estimator_params'), ''],
      ['CurrentMinMaxEstimatorParams.percentile', 'None', weightQuant('range_estimator_params.percentile'), ''],
      [
        'RunningMinMaxEstimatorParams.momentum',
        '0.9',
        activationQuant('range_estimator_params.momentum'),
        'of activations in batches',
      ],
      [
        'MSEEstimatorParams.range_opt_method',
        '`golden_section`',
        weightQuant('range_estimator_params.range_opt_method'),
        'Brent’s bounded method',
      ],
      ['MSEEstimatorParams.num_candidates', '100', weightQuant('range_estimator_params.num_candidates'), 'of the grid'],
      ['MSEEstimatorParams.range_margin', '0.5', weightQuant('range_estimator_params.range_margin'), 'absolute'],
    ],
  },
];
