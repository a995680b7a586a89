// What of a spec has an effect in Quark, so that two spellings of the same numbers are equal. Each rule is what Quark's code does with the
// field (amd-quark 0.13, torch/quantization): a scaled dtype reads it, or nothing does.

const integers = /^u?int\d+$/;
/** Casts, without scales; and blocks with a shared exponent, which read only these fields (config.py, cases 1 and 2). */
const casts = ['bfloat16', 'float16'];
const blocks = ['mx', 'mx6', 'mx9', 'bfp16'];

function effectOfBlocks(spec) {
  const { ch_axis, group_size } = spec;
  // mx6, mx9 and bfp16 take the mode and ignore it.
  if (spec.dtype !== 'mx') return { dtype: spec.dtype, qscheme: 'per_group', ch_axis, group_size };
  const scale_calculation_mode = spec.scale_calculation_mode ?? 'even';
  if (integers.test(spec.mx_element_dtype))
    return { dtype: 'mx', mx_element_dtype: spec.mx_element_dtype, ch_axis, group_size, scale_calculation_mode };
  // mx of floats is an older name of the float with e8m0 scales.
  const observer = 'PerBlockMXObserver';
  const dtype = spec.mx_element_dtype;
  return { dtype, qscheme: 'per_group', observer, ch_axis, group_size, scale_format: 'e8m0', scale_calculation_mode };
}

/** pof2 is read by nothing: the PowOf2 observers always give powers of two, the others never do. */
const scaleTypeOf = ({ scale_type }) => (scale_type === 'pof2' ? 'float' : (scale_type ?? 'float'));

/** The fields of one spec of a weight that say how it is quantized. `spec` has Quark's keys. */
export function effectOf(spec) {
  if (casts.includes(spec.dtype)) return { dtype: spec.dtype };
  if (blocks.includes(spec.dtype)) return effectOfBlocks(spec);
  // Ours has a name of its own for LSQ per channel.
  const observer = spec.observer_cls === 'PerChannelLSQObserver' ? 'LSQObserver' : spec.observer_cls;
  const effect = { dtype: spec.dtype, qscheme: spec.qscheme, observer };
  if (spec.qscheme === 'per_channel' || spec.qscheme === 'per_group') effect.ch_axis = spec.ch_axis;
  if (spec.qscheme === 'per_group') effect.group_size = spec.group_size;
  if (spec.qscheme === 'per_block') effect.block_size = spec.block_size.join('x');
  if (spec.is_scale_quant) effect.is_scale_quant = true;
  if (integers.test(spec.dtype)) {
    effect.symmetric = spec.symmetric ?? false;
    if (!effect.symmetric) effect.zero_point_type = spec.zero_point_type ?? 'int32';
    effect.round_method = spec.round_method ?? 'half_even';
    effect.scale_type = scaleTypeOf(spec);
    return effect;
  }
  effect.scale_format = spec.scale_format ?? 'float32';
  if (effect.scale_format === 'e8m0') effect.scale_calculation_mode = spec.scale_calculation_mode ?? 'even';
  else if (effect.scale_format === 'float32') effect.scale_type = scaleTypeOf(spec);
  return effect;
}

/** Of one spec, a list of stages, or none; as text, so that === compares. */
export function effectText(spec) {
  if (spec === null || spec === undefined) return 'none';
  return [spec]
    .flat()
    .map((stage) => JSON.stringify(effectOf(stage)))
    .join(' then ');
}
