// Where a checkpoint that we write from a config of Quark 0.13 is not what Quark writes, on purpose or because of what Quark does. A difference
// that none of these explains is a failure.

/** Of a config that ours refuses and Quark exports; `problem` is a diagnostic. */
export const exportRefusals = [
  {
    id: 'fp8_e5m3 scales under a scale',
    text: 'Quark exports amdfp4_global16 and amdfp4_global32, and its own loader cannot read them (dequantize_float8_e5m3_v2 expected uint8 input); the quark format refuses them here',
    explains: ({ code, message }) => code === 'format-unsupported' && message.includes('whose scales are fp8_e5m3'),
  },
  {
    id: 'static scales of scales',
    text: 'the scale above the fp8 scales of NVFP4 activations (input_scale_2) is not calibrated here; the check leaves input_tensors out for these schemes',
    explains: ({ code, message }) => code === 'format-unsupported' && message.includes('and not these of fp4'),
  },
  {
    id: 'experts without tokens',
    text: 'an expert that no calibration token reaches has no input scale; Quark exports the one that its observer starts with, here it is an error',
    explains: ({ code, message }) => code === 'argument-invalid' && message.includes('there is no data for'),
  },
];

/** Schemes that Quark’s own exporter or quantizer refuses, for all models or where groups do not fit: pattern of its error. */
export const quarkRefusals = [
  { id: 'mx6 and mx9', text: 'Quark’s exporter asserts on them', explains: ({ name }) => /^mx[69]$/.test(name) },
  { id: 'bfp16', text: 'Quark’s exporter has no limits of bfp16', explains: ({ name }) => name === 'bfp16' },
  {
    id: 'groups that do not fit',
    text: 'Quark refuses groups that do not divide an axis',
    explains: ({ error }) => error.includes('is not divisible by group_size'),
  },
];

/** Keys of specs whose values may differ, with the reason: they say the same. */
export const specDifferences = {
  zero_point_type: 'left out for floats, which have none; Quark writes its default',
  symmetric: 'true for floats; null in Quark where a spec does not set it',
};

/** Keys of the quantization_config block whose values may differ, with the reason. */
export const blockDifferences = {
  algo_config: 'null, because readers do nothing with it',
  version: 'null: no version of Quark wrote the file',
  kv_cache_quant_config: 'empty: the layers are listed in layer_quant_config',
  'export/kv_cache_group': 'the patterns of kv_cache_quant_config, where scales were calibrated',
  layer_quant_config: 'scale_type null is written as float; entries come from the plan',
};
