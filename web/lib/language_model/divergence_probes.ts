// How far a model is from itself with tensors as a file would have them: the mean Kullback-Leibler divergence over the positions of a few
// tokens.

import type { AutoConfigOptions } from '../api/types.js';
import { together } from '../io/abort.js';
import { partOf, type TokenBatch } from '../model/tokens.js';
import type { ForwardBatch } from '../plan/forward_plan.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunInputs, type RunResources, withRunInputs } from '../pool/run_resources.js';
import { type ForwardWork, type ReplacedTensor, valuesPerPosition, type WorkProgress } from '../worker/jobs.js';
import { batchesOf, bothOf } from './evaluate.js';

/** Tokens of a probe; those of one sequence if it has more. */
const probedTokens = 512;
function shortened(tokens: TokenBatch): TokenBatch {
  let last = 1;
  for (let count = tokens.lengths[0] ?? 0; last < tokens.lengths.length; ++last) {
    count += tokens.lengths[last] ?? 0;
    if (count > probedTokens) break;
  }
  return partOf(tokens, 0, last);
}

/** Tensors that are replaced together. */
interface Probe {
  name: string;
  tensors: ReplacedTensor[];
}

/** What every pass runs and reads; `bytes` and the number of `tensors` of one. */
interface ProbeWork {
  tokens: TokenBatch;
  batches: ReturnType<typeof batchesOf>;
  tensors: number;
  bytes: number;
  steps: ForwardWork['steps'];
}

/** Compares a model with itself with tensors replaced. */
export class DivergenceProbes {
  constructor(
    readonly resources: RunResources,
    readonly runInputs: RunInputs,
    readonly batch: ForwardBatch,
    readonly options: Pick<AutoConfigOptions, 'signal' | 'onProgress'>,
  ) {}

  /** The mean KLD of each probe over all positions. Every worker runs the reference once, then its share of the probes. */
  async measure(probes: readonly Probe[]): Promise<number[]> {
    const { pool, memory } = this.resources;
    const share = Math.ceil(probes.length / Math.max(1, memory.threads));
    const shares = Array.from({ length: Math.ceil(probes.length / share) }, (_, i) =>
      probes.slice(i * share, (i + 1) * share),
    );
    const work = this.#work();
    const passes = (shares.length + probes.length) * work.batches.length;
    const progress = new ProgressMeter(this.options.onProgress, work.tensors * passes, work.bytes * passes);
    const advance = (done: WorkProgress) => progress.advance({ ...done, phase: 'evaluate' });
    const found = await withRunInputs(pool, this.runInputs, (context) =>
      together(this.options.signal, (stop) =>
        shares.map((shared) => this.#measureShare(context, work, shared, stop, advance)),
      ),
    );
    progress.finish('evaluate');
    return found.flat();
  }

  /** What every pass runs and reads. */
  #work(): ProbeWork {
    const { plan, tokens: all } = this.batch;
    const tokens = shortened(all);
    const tensors = plan.steps.flatMap((step) => step.tensors);
    return {
      tokens,
      batches: batchesOf(this.resources.memory, bothOf([plan, plan]), tokens.lengths),
      tensors: tensors.length,
      bytes: tensors.reduce((sum, tensor) => sum + tensor.bytes, 0),
      steps: plan.steps,
    };
  }

  async #measureShare(
    context: RunContext,
    { tokens, batches, bytes, steps }: ProbeWork,
    probes: readonly Probe[],
    signal: AbortSignal,
    advance: (done: WorkProgress) => void,
  ): Promise<number[]> {
    const { architecture } = this.batch.plan;
    const label = `effects of ${probes.length} choices of types, the first: ${probes[0]?.name}`;
    const klds: number[][] = probes.map(() => []);
    for (const { first, last } of batches) {
      const { ids, lengths } = partOf(tokens, first, last);
      const reference: ForwardWork = { architecture, activations: 'float32', steps, reads: 0, tokens: ids, lengths };
      const models = probes.map(({ tensors: replaced }) => ({ ...reference, replaced }));
      const job = {
        label,
        bytes: (1 + probes.length) * bytes,
        parts: [{ kind: 'divergence' as const, reference, models }],
      };
      const { parts } = await this.resources.pool.run(context, job, signal, advance);
      const values = parts[0] as Float64Array;
      const each = values.length / probes.length;
      for (const [i, found] of klds.entries())
        for (let at = i * each; at < (i + 1) * each; at += valuesPerPosition) found.push(values[at] as number);
    }
    return klds.map((found) => found.reduce((sum, kld) => sum + kld, 0) / found.length);
  }
}
