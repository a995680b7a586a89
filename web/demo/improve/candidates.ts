// Better specs for a layer with large errors: finer groups first, then more bits. Written as edits of the config.
import type { PlannedTensor, QuantizationSpec } from 'wasmquant';
import { withExcluded, withSpec, withType } from '../configure/edit-layers';

export interface Candidate {
  title: string;
  /** The config with a better spec for this layer. */
  edit(config: Record<string, unknown>): Record<string, unknown>;
}

function specOf(layer: string, title: string, weight: Partial<QuantizationSpec>): Candidate {
  return { title, edit: (config) => withSpec(config, [layer], weight) };
}

const bitsOf = (dtype: string) => Number(/\d+/.exec(dtype)?.[0] ?? 0);

function forRecipe({ layer, spec }: PlannedTensor): Candidate[] {
  const dtype = spec?.dtype ?? '';
  return ['q5_k', 'q6_k', 'q8_0', 'f16']
    .filter((type) => bitsOf(type) > bitsOf(dtype))
    .map((type) => ({ title: `${type} blocks`, edit: (config) => withType(config, [layer], type) }));
}

/** Candidates for one row, cheapest first; those that do not fit the format fail in planning. */
export function candidatesFor(row: PlannedTensor, isRecipe: boolean): Candidate[] {
  const { layer, spec } = row;
  if (!spec || !layer) return [];
  if (isRecipe) return forRecipe(row);
  const found: Candidate[] = [];
  const bits = bitsOf(spec.dtype);
  const { group_size: group, symmetric, scale_sign } = spec;
  const isInteger = /^u?int/.test(spec.dtype);
  if (isInteger && bits <= 4) {
    if (spec.qscheme !== 'per_group' || (group ?? 0) > 32) {
      const signs = scale_sign && { scale_sign };
      const finer = {
        dtype: spec.dtype,
        qscheme: 'per_group',
        group_size: 32,
        ch_axis: -1,
        symmetric,
        ...signs,
      } as const;
      found.push(specOf(layer, `${spec.dtype} in groups of 32`, finer));
    }
  }
  if (bits < 8) {
    const whole = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true } as const;
    found.push(specOf(layer, 'int8 per channel', whole));
  } else if (spec.qscheme === 'per_tensor') {
    const finer = { dtype: spec.dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: true } as const;
    found.push(specOf(layer, `${spec.dtype} per channel`, finer));
  } else if (isInteger && bits === 8 && spec.qscheme === 'per_channel') {
    const groups = { dtype: 'int8', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true } as const;
    found.push(specOf(layer, 'int8 in groups of 32', groups));
    const shifted = { dtype: 'uint8', qscheme: 'per_channel', ch_axis: spec.ch_axis ?? 0, symmetric: false } as const;
    if (symmetric) found.push(specOf(layer, 'uint8 per channel with zero points', shifted));
  }
  found.push({ title: 'not quantized', edit: (config) => withExcluded(config, [layer]) });
  return found;
}
