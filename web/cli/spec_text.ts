/** A tensor spec in a few words of Quark's vocabulary: `int4 per_group 32`, `uint8 per_channel asymmetric`. What is usual is left out. */
import type { PlannedTensor, QuantizationSpec } from '../lib/node.js';

/** Rows of a weight are its output channels; any other axis is worth saying. */
const kUsualAxis = 0;
const kUsualGroupAxes = [-1, 1];

export function specText(spec: QuantizationSpec): string {
  const parts = [spec.dtype];
  const { qscheme, ch_axis: axis } = spec;
  if (qscheme) parts.push(qscheme);
  if (qscheme === 'per_group') {
    parts.push(spec.group_size === -1 ? 'of the whole axis' : String(spec.group_size));
    if (axis != null && !kUsualGroupAxes.includes(axis)) parts.push(`axis ${axis}`);
  }
  if (qscheme === 'per_channel' && axis != null && axis !== kUsualAxis) parts.push(`axis ${axis}`);
  if (spec.symmetric === false) parts.push('asymmetric');
  if (spec.is_dynamic) parts.push('dynamic');
  if (spec.round_method && spec.round_method !== 'half_even') parts.push(spec.round_method);
  if (spec.scale_type && spec.scale_type !== 'float') parts.push(`scale ${spec.scale_type}`);
  return parts.join(' ');
}

/** What becomes of a tensor. */
export function actionText(tensor: Pick<PlannedTensor, 'action' | 'spec' | 'stages'>): string {
  if (tensor.action === 'copy' || tensor.spec === null) return 'copied';
  return tensor.action === 'cast'
    ? `cast to ${tensor.spec.dtype}`
    : (tensor.stages ?? [tensor.spec]).map(specText).join(', then ');
}
