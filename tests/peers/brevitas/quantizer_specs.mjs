// Brevitas' quantizers in the terms of our specs: the arguments of its program for language models become a spec with `grid`.

const ocpDtypes = { e4m3: 'fp8_e4m3', e5m2: 'fp8_e5m2', e3m2: 'fp6_e3m2', e2m3: 'fp6_e2m3', e2m1: 'fp4' };
const fnuzDtypes = { e4m3: 'fp8_e4m3fnuz', e5m2: 'fp8_e5m2fnuz' };

const isSigned = ({ weight_scale_precision: precision }) => precision.startsWith('signed_');

/** Quantizers that no spec describes: {id, text, explains(arguments)}. */
export const withoutCounterpart = [
  {
    id: 'half-quadratic',
    text: 'hqo: Brevitas’ own steps and stopping rule; ours are those of the HQQ paper (HalfQuadratic observers)',
    explains: ({ weight_param_method: method }) => method === 'hqo',
  },
  {
    id: 'searches of groups',
    text: 'mse with per_group: the search for thresholds is per tensor or per channel here; PerGroupMSEObserver searches ranges',
    explains: ({ weight_param_method: method, weight_quant_granularity: granularity }) =>
      method === 'mse' && granularity === 'per_group',
  },
  {
    id: 'signed scales of thresholds and narrow ranges',
    text: 'signed scales are of the value with the largest magnitude here, over the lowest code: not of searched thresholds (mse), nor with narrow_range',
    explains: (given) => isSigned(given) && (given.weight_param_method === 'mse' || given.weight_kwargs.narrow_range),
  },
  {
    id: 'powers of two for floats',
    text: 'po2_scale of floats is for groups (MX) here, not for channels',
    explains: ({
      weight_quant_format: format,
      weight_scale_precision: precision,
      weight_quant_granularity: granularity,
    }) => format !== 'int' && precision === 'po2_scale' && granularity !== 'per_group',
  },
];

function dtypeOf({ weight_quant_format: format, weight_bit_width: bits, weight_quant_type: type }) {
  if (format === 'int') return { dtype: `${type === 'sym' ? 'int' : 'uint'}${bits}`, symmetric: type === 'sym' };
  const [, family, float] = format.match(/^(float|float_ocp|float_fnuz)_(e\dm\d)$/);
  if (family === 'float')
    return { dtype: 'minifloat', exponent_bits: Number(float[1]), mantissa_bits: Number(float[3]) };
  return { dtype: (family === 'float_ocp' ? ocpDtypes : fnuzDtypes)[float] };
}

const schemes = {
  per_tensor: () => ({ qscheme: 'per_tensor' }),
  per_channel: () => ({ qscheme: 'per_channel', ch_axis: 0 }),
  per_group: ({ weight_group_size: size }) => ({ qscheme: 'per_group', ch_axis: -1, group_size: size }),
};

/** The spec of one quantizer; `given` has the program's arguments. */
export function specOf(given) {
  const isInteger = given.weight_quant_format === 'int';
  const isPowerOfTwo = given.weight_scale_precision === 'po2_scale';
  const isGroup = given.weight_quant_granularity === 'per_group';
  const spec = { ...dtypeOf(given), ...schemes[given.weight_quant_granularity](given) };
  if (isInteger && given.weight_quant_type === 'asym' && !given.quantize_weight_zero_point)
    spec.zero_point_type = 'float32';
  if (given.weight_param_method === 'mse') {
    spec.observer_cls =
      isGroup || given.weight_quant_granularity === 'per_tensor'
        ? 'PerTensorThresholdMSEObserver'
        : 'PerChannelThresholdMSEObserver';
    spec.observer_options = { search: 'interval' };
  }
  if (isPowerOfTwo && !isInteger)
    return { ...spec, scale_format: 'e8m0', scale_calculation_mode: given.scale_rounding_func_type ?? 'floor' };
  if (isPowerOfTwo) spec.scale_type = 'pof2';
  const smallestThreshold = { smallest_threshold: Math.fround(given.scaling_min_val) };
  if (isSigned(given)) return { ...spec, scale_sign: 'signed', grid: { divides: true, ...smallestThreshold } };
  spec.grid = {
    divisor: isPowerOfTwo ? 'code_count' : 'smallest_code',
    threshold_rounding: isPowerOfTwo ? (given.scale_rounding_func_type ?? (isGroup ? 'floor' : 'ceil')) : 'none',
    zero_point_order: 'before_rounding',
    narrow: isInteger && given.weight_kwargs.narrow_range,
    divides: true,
    max_includes_zero: false,
    smallest_scale: 0,
    ...smallestThreshold,
  };
  return spec;
}
