// Where a weight that was quantized and dequantized differs from Brevitas 0.13's, on purpose or because of what Brevitas does. The first row that explains
// a case counts; a case that none explains is a failure.

/** Of a case that both take: {given, spec, errors, count, largest, areTies}; `given` has the arguments of Brevitas' program. */
export const numberDifferences = [
  {
    id: 'signs of ties',
    text: 'where the largest magnitude of a signed scale has both signs, Brevitas takes that of the first, and here the lowest value is the lowest code',
    explains: ({ spec, areTies }) => spec.scale_sign === 'signed' && areTies,
  },
  {
    id: 'fractional zero points and searches',
    text: 'mse with quantize_weight_zero_point false: no config of the dialect has that; the two end at other zero points',
    explains: ({ given }) =>
      given.weight_param_method === 'mse' && given.weight_quant_type === 'asym' && !given.quantize_weight_zero_point,
  },
  {
    id: 'floors of MX scales',
    text: 'Brevitas has a smallest threshold (scaling_min_val), by which blocks of tiny values become zero; scales of e8m0 go down to 2^-127',
    explains: ({ spec, given, errors, count }) =>
      spec.scale_format === 'e8m0' &&
      errors.ours <= errors.theirs &&
      count <= (given.scaling_min_val > 1e-9 ? 1024 : 256),
  },
];

/** Of a case that one of the two refuses: {given, and error, or a diagnostic of ours}. */
export const numberRefusals = [];
