// A tensor's spec in a few words: `int4 groups of 32`, `uint8 per channel asymmetric`. Defaults are omitted.
import type { PlannedTensor, QuantizationSpec } from 'wasmquant';

/** Rows of a weight are its output channels, and groups run along rows; other axes are mentioned. */
const usualChannelAxis = 0;
const usualGroupAxes = [-1, 1];

/** Which elements share a scale; '' if there are no scales. */
function granularityText({ qscheme, ch_axis: axis, group_size: size, block_size: block }: QuantizationSpec): string {
  const along = (isUsual: boolean) => (axis == null || isUsual ? '' : ` (axis ${axis})`);
  switch (qscheme) {
    case 'per_tensor':
      return 'per tensor';
    case 'per_channel':
      return `per channel${along(axis === usualChannelAxis)}`;
    case 'per_group':
      return `groups of ${size === -1 ? 'the whole axis' : size}${along(usualGroupAxes.includes(axis ?? 0))}`;
    case 'per_block':
      return `blocks of ${block?.join(' × ')}`;
    default:
      return '';
  }
}

/** A spec without its dtype; '' if the dtype determines it. */
export function schemeText(spec: QuantizationSpec): string {
  const { round_method: rounding, scale_type: scales } = spec;
  return [
    granularityText(spec),
    spec.symmetric === false && 'asymmetric',
    spec.is_dynamic && 'dynamic',
    rounding && rounding !== 'half_even' && rounding,
    scales && scales !== 'float' && `scale ${scales}`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** A spec with its dtype. */
export function specText(spec: QuantizationSpec): string {
  return `${spec.dtype} ${schemeText(spec)}`.trimEnd();
}

/** What happens to a tensor. */
export function actionText(tensor: Pick<PlannedTensor, 'action' | 'spec' | 'stages'>): string {
  if (tensor.action === 'copy' || tensor.spec === null) return 'copied';
  return tensor.action === 'cast'
    ? `cast to ${tensor.spec.dtype}`
    : (tensor.stages ?? [tensor.spec]).map(specText).join(', then ');
}
