// What autoConfig chooses from, and the config of what it has chosen.

import { QuantizationError } from '../api/errors.js';
import type { AutoLayer, Plan, QuantizationSpec } from '../api/types.js';

const groups = (dtype: 'int3' | 'int4', group_size: number): QuantizationSpec => ({
  dtype,
  qscheme: 'per_group',
  group_size,
  ch_axis: -1,
  symmetric: true,
  scale_sign: 'signed',
  scale_refit: 'calibrated',
});
const channels = (dtype: 'int4' | 'int8'): QuantizationSpec => ({
  dtype,
  qscheme: 'per_channel',
  ch_axis: 0,
  symmetric: true,
  ...(dtype === 'int4' && { scale_sign: 'signed', scale_refit: 'calibrated' }),
});
/** By size; not every format has int3. */
export const autoCandidates: readonly QuantizationSpec[] = [
  groups('int3', 64),
  channels('int4'),
  groups('int4', 128),
  groups('int4', 64),
  groups('int4', 32),
  channels('int8'),
];

export interface Candidate {
  spec: QuantizationSpec;
  plan: Plan;
  tasks: Map<string, number>;
  work: Uint8Array;
}

/** Those that the format supports for every layer. Throws the last refusal if there are none. */
export function fittingCandidates(
  specs: readonly QuantizationSpec[],
  candidate: (spec: QuantizationSpec) => Candidate,
): Candidate[] {
  const found: Candidate[] = [];
  let refusal: unknown = null;
  for (const spec of specs) {
    try {
      found.push(candidate(spec));
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      refusal = error;
    }
  }
  if (found.length === 0) throw refusal;
  return found;
}

/** Layers by the most common candidate, exceptions by name. */
export function configOf(candidates: Candidate[], layers: AutoLayer[], base: object): Record<string, unknown> {
  const counts = candidates.map((_, i) => layers.filter(({ chosen }) => chosen === i).length);
  const most = counts.indexOf(Math.max(...counts));
  const others = layers.filter(({ chosen }) => chosen !== most);
  return {
    global_quant_config: { weight: candidates[most]?.spec },
    layer_quant_config: Object.fromEntries(
      others.map(({ name, chosen }) => [name.replace(/\.weight$/, ''), { weight: candidates[chosen]?.spec }]),
    ),
    ...base,
  };
}
