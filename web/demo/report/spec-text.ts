import type { QuantizationSpec } from 'wasmquant';

function granularity({ qscheme, group_size, ch_axis }: QuantizationSpec): string | null {
  if (qscheme === 'per_group') return `groups of ${group_size}`;
  if (qscheme === 'per_channel') return `per channel${ch_axis ? ` (axis ${ch_axis})` : ''}`;
  return qscheme === 'per_tensor' ? 'per tensor' : null;
}

/** A spec in a few words, such as `groups of 128, symmetric`; the dtype is shown apart. */
export function specText(spec: QuantizationSpec): string {
  const symmetry = spec.symmetric === true ? 'symmetric' : spec.symmetric === false ? 'asymmetric' : null;
  return [granularity(spec), symmetry].filter(Boolean).join(', ');
}
