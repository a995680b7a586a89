// Losses of a GGUF mixture in nats. What rounding one tensor of a block does to the residual stream (auto_config.ts) is scaled by what
// rounding all tensors of its kind, and all of the blocks around it, was measured to do to the predictions: the mean Kullback-Leibler divergence of
// passes that run with these tensors as the file would have them. Tables of tokens are measured with each type by itself.
//   loss = stream error * (KLD / stream error of its kind) * (KLD / stream error of these blocks) / (KLD / stream error of all kinds)

import { failure } from '../api/errors.js';
import type { AutoConfig, AutoLayer } from '../api/types.js';
import type { ReplacedTensor } from '../worker/jobs.js';
import type { DivergenceProbes } from './divergence_probes.js';

/** Types whose codes algorithms can choose: of blocks of 256, and of 32 for rows of other lengths. */
export const mixtureTypes = [
  ...['q2_k', 'q3_k', 'iq4_xs', 'q4_k', 'q5_k', 'q6_k'],
  ...['iq4_nl', 'q4_1', 'q5_0', 'q5_1', 'q8_0'],
] as const;

/** Gives every tensor that can have it a type. */
export const typeEverywhere = (type: string, exclude: readonly string[]) => ({
  dialect: 'gguf',
  recipe: 'q4_k_m',
  layers: { '*': type },
  exclude: [...exclude],
});

/** A recipe that names each layer's type; its name is that of the type that most have. */
export function mixtureOf(types: readonly string[], layers: readonly AutoLayer[], exclude: readonly string[]) {
  const counts = types.map((type, i) => (type === 'mxfp4' ? -1 : layers.filter(({ chosen }) => chosen === i).length));
  const named = layers.map(({ name, chosen }) => [name.replace(/\.weight$/, ''), types[chosen]]);
  const recipe = types[counts.indexOf(Math.max(...counts))];
  return { dialect: 'gguf', recipe, layers: Object.fromEntries(named), exclude: [...exclude] };
}

/** A layer of a mixture: where the pass reads it, and its tasks by choice. */
export interface MixedLayer {
  layer: AutoLayer;
  places: { step: number; slot: number }[];
  tasks: readonly ({ work: number; task: number } | null)[];
  /** Null outside of blocks. */
  block: number | null;
}

/** Of consecutive blocks that are measured together. */
const bands = 8;

const replaced = ({ places, tasks }: MixedLayer, choice: number): ReplacedTensor[] => {
  const task = tasks[choice];
  return task ? places.map((place) => ({ ...place, ...task })) : [];
};

const chosen = (mixed: MixedLayer) => replaced(mixed, mixed.layer.chosen);

/** A choice about a third of the way from the smallest: its effect is neither lost in rounding nor out of proportion. */
function probeOf({ layer }: MixedLayer): number {
  const found = layer.choices.flatMap((choice, index) => (choice ? [{ bytes: choice.bytes, index }] : []));
  found.sort((a, b) => a.bytes - b.bytes || a.index - b.index);
  return found[Math.floor((found.length - 1) / 3)]?.index ?? 0;
}

/** Replaces the stream errors of layers of blocks by losses, and measures the others. */
export async function scaleLosses(probes: DivergenceProbes, layers: readonly MixedLayer[]): Promise<void> {
  const last = Math.max(...layers.map(({ block }) => block ?? 0));
  const groups = new Map<string, MixedLayer[]>();
  const kindOf = (name: string) => `all ${name.replace(/\.\d+\./, '.*.')}`;
  const bandOf = (block: number) => `band ${Math.ceil((block * bands) / last)} of blocks`;
  const outer = layers.filter(({ block }) => block === null);
  for (const mixed of layers) {
    if (mixed.block === null) continue;
    for (const key of [kindOf(mixed.layer.name), bandOf(mixed.block)])
      groups.set(key, [...(groups.get(key) ?? []), mixed]);
  }
  const ofGroups = [...groups].map(([name, members]) => ({
    name,
    tensors: members.flatMap((mixed) => replaced(mixed, probeOf(mixed))),
  }));
  const places = outer.flatMap((mixed) =>
    mixed.layer.choices.flatMap((choice, index) => (choice ? [{ mixed, choice, index }] : [])),
  );
  const ofTables = places.map(({ mixed, index }) => ({ name: mixed.layer.name, tensors: replaced(mixed, index) }));
  const found = await probes.measure([...ofGroups, ...ofTables]);
  for (const [i, { choice }] of places.entries()) choice.loss = found[ofGroups.length + i] as number;

  const error = (members: readonly MixedLayer[]) =>
    members.reduce((sum, mixed) => sum + (mixed.layer.choices[probeOf(mixed)]?.loss ?? 0), 0);
  const inBlocks = layers.filter(({ block }) => block !== null);
  const kinds = new Set(inBlocks.map(({ layer }) => kindOf(layer.name)));
  const kld = ofGroups.reduce((sum, { name }, i) => sum + (kinds.has(name) ? (found[i] as number) : 0), 0);
  const overall = kld / error(inBlocks);
  const factors = new Map(
    ofGroups.map(({ name }, i) => {
      const factor = (found[i] as number) / error(groups.get(name) ?? []);
      return [name, Number.isFinite(factor) && factor > 0 ? factor : overall];
    }),
  );
  for (const { layer, block } of inBlocks) {
    const factor = ((factors.get(kindOf(layer.name)) ?? 0) * (factors.get(bandOf(block ?? 0)) ?? 0)) / overall;
    for (const choice of layer.choices) if (choice) choice.loss *= Number.isFinite(factor) ? factor : 0;
  }
}

/** The mixture with its measured loss, which is at most `maxLoss`: losses of layers do not quite add up. `chosenFor` puts what it chooses into
 * the layers. Error: argument-invalid if even the best types lose more. */
export async function fittedMixture(
  maxLoss: number | null,
  layers: readonly MixedLayer[],
  probes: DivergenceProbes,
  chosenFor: (maxLoss: number | null) => AutoConfig,
): Promise<AutoConfig> {
  const margin = 0.95;
  const least = layers.reduce(
    (sum, { layer }) => sum + Math.min(...layer.choices.map((choice) => choice?.loss ?? Number.POSITIVE_INFINITY)),
    0,
  );
  for (let limit = maxLoss; ; ) {
    const found = chosenFor(limit);
    const [measuredLoss = 0] = await probes.measure([{ name: 'the mixture', tensors: layers.flatMap(chosen) }]);
    if (maxLoss === null || limit === null || measuredLoss <= maxLoss) return { ...found, measuredLoss };
    const reachable = least * (1 + 1e-9); // sums are rounded
    if (limit <= reachable)
      throw failure('argument-invalid', 'maxLoss', `${maxLoss} is out of reach: the best types have ${measuredLoss}`);
    limit = Math.max(reachable, (limit * margin * maxLoss) / measuredLoss);
  }
}
