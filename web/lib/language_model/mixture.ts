// Losses of a GGUF mixture in nats. What rounding one tensor of a block does to the residual stream (auto_config.ts) is scaled by what
// rounding all tensors of its kind, and all of the blocks around it, was measured to do to the predictions: the mean Kullback-Leibler divergence of
// passes that run with these tensors as the file would have them. Tables of tokens are measured with each type by itself.
//   loss = stream error * (KLD / stream error of its kind) * (KLD / stream error of these blocks) / (KLD / stream error of all kinds)

import { failure } from '../api/errors.js';
import type { AutoConfig, AutoConfigOptions, AutoLayer } from '../api/types.js';
import { linkedController } from '../io/abort.js';
import { partOf, type TokenBatch } from '../model/tokens.js';
import type { ForwardBatch } from '../plan/forward_plan.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunInputs, type RunResources, withRunInputs } from '../pool/run_resources.js';
import { type ForwardWork, type ReplacedTensor, valuesPerPosition } from '../worker/jobs.js';
import { batchesOf, bothOf } from './evaluate.js';

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

/** Tokens of a probe; those of one sequence if it has more. */
const probedTokens = 512;
/** Of consecutive blocks that are measured together. */
const bands = 8;

function shortened(tokens: TokenBatch): TokenBatch {
  let last = 1;
  for (let count = tokens.lengths[0] ?? 0; last < tokens.lengths.length; ++last) {
    count += tokens.lengths[last] ?? 0;
    if (count > probedTokens) break;
  }
  return partOf(tokens, 0, last);
}

const replaced = ({ places, tasks }: MixedLayer, choice: number): ReplacedTensor[] => {
  const task = tasks[choice];
  return task ? places.map((place) => ({ ...place, ...task })) : [];
};

/** Compares a model with itself with tensors replaced. */
export class DivergenceProbes {
  constructor(
    readonly resources: RunResources,
    readonly runInputs: RunInputs,
    readonly batch: ForwardBatch,
    readonly options: Pick<AutoConfigOptions, 'signal' | 'onProgress'>,
  ) {}

  /** The mean KLD of each probe over all positions; as many probes at a time as there are workers. */
  async measure(probes: readonly { name: string; tensors: ReplacedTensor[] }[]): Promise<number[]> {
    const { architecture, steps: all } = this.batch.plan;
    const { pool, memory } = this.resources;
    const tokens = shortened(this.batch.tokens);
    const batches = batchesOf(memory, bothOf([this.batch.plan, this.batch.plan]), tokens.lengths);
    const steps = all.map(({ name, tensors }) => ({ name, tensors }));
    const tensors = all.flatMap((step) => step.tensors);
    const bytes = 2 * tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const jobs = probes.length * batches.length;
    const progress = new ProgressMeter(this.options.onProgress, 2 * tensors.length * jobs, bytes * jobs);
    const { controller: stop, unlink } = linkedController(this.options.signal);
    const found = probes.map(() => 0);
    await withRunInputs(pool, this.runInputs, async (context) => {
      const waiting = probes.entries();
      const lane = async () => {
        for (const [number, probe] of waiting) {
          const klds: number[] = [];
          for (const { first, last } of batches) {
            const { ids, lengths } = partOf(tokens, first, last);
            const pass: ForwardWork = { architecture, activations: 'float32', steps, reads: 0, tokens: ids, lengths };
            const part = { kind: 'divergence' as const, reference: pass, model: { ...pass, replaced: probe.tensors } };
            const job = { label: `effect of ${probe.name}`, bytes, parts: [part] };
            const { parts } = await pool.run(context, job, stop.signal, (done) =>
              progress.advance({ ...done, phase: 'evaluate' }),
            );
            klds.push(...[...(parts[0] as Float64Array)].filter((_, i) => i % valuesPerPosition === 0));
          }
          found[number] = klds.reduce((sum, kld) => sum + kld, 0) / klds.length;
        }
      };
      const lanes = Array.from({ length: Math.max(1, memory.threads) }, lane);
      try {
        await Promise.all(lanes);
      } catch (error) {
        stop.abort(error);
        await Promise.allSettled(lanes);
        throw error;
      } finally {
        unlink();
      }
    });
    progress.finish('evaluate');
    return found;
  }

  /** The KLD of a mixture. */
  async measureMixture(layers: readonly MixedLayer[]): Promise<number> {
    const tensors = layers.flatMap((mixed) => replaced(mixed, mixed.layer.chosen));
    return (await this.measure([{ name: 'the mixture', tensors }]))[0] as number;
  }
}

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
    const measuredLoss = await probes.measureMixture(layers);
    if (maxLoss === null || limit === null || measuredLoss <= maxLoss) return { ...found, measuredLoss };
    const reachable = least * (1 + 1e-9); // sums are rounded
    if (limit <= reachable)
      throw failure('argument-invalid', 'maxLoss', `${maxLoss} is out of reach: the best types have ${measuredLoss}`);
    limit = Math.max(reachable, (limit * margin * maxLoss) / measuredLoss);
  }
}
