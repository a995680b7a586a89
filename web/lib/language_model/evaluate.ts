// Perplexity and bits per byte. Losses are added in sequence order, so the split among workers does not matter.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { evaluateOptions } from '../api/language_model_kinds.js';
import type { EvaluateOptions, Evaluation } from '../api/types.js';
import type { MemoryPlan } from '../engine/memory.js';
import { abortable, linkedController } from '../io/abort.js';
import type { OpenedModel } from '../model/model.js';
import { tokenBytesOf } from '../model/token_bytes.js';
import { longestOf, partOf, type TokenBatch } from '../model/tokens.js';
import { type ForwardPlanJson, forwardBatchOf, forwardBesidesBytes } from '../plan/forward_plan.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { type Workshop, withMaterials } from '../pool/workshop.js';
import type { ForwardStep, ForwardWork } from '../worker/jobs.js';

/** Splits sequences into batches [first, last) that fit the workers' memory, as even as whole sequences can be. Errors:
 * memory-budget. */
export function batchesOf(
  memory: MemoryPlan,
  plan: ForwardPlanJson,
  lengths: readonly number[],
): { first: number; last: number }[] {
  const stepBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const fixed = stepBytes + plan.workingBytes + forwardBesidesBytes;
  const longest = longestOf({ lengths: [...lengths] });
  const all = lengths.reduce((sum, length) => sum + length, 0);
  for (let workers = Math.min(Math.max(1, memory.threads), lengths.length); workers >= 1; --workers) {
    const fitting = Math.floor((memory.shareBytes / workers - fixed) / plan.tokenBytes); // tokens
    if (fitting < longest) continue;
    const rounds = Math.ceil(all / workers / fitting);
    return filled(lengths, Math.ceil(all / (workers * rounds)), fitting);
  }
  const needed = fixed + longest * plan.tokenBytes + memory.hostBytes;
  const detail = `the largest block as float32 and one sequence need ${needed} bytes; give that much, or shorter sequences`;
  throw failure('memory-budget', 'memoryBudgetBytes', detail);
}

/** Consecutive sequences: batches grow to `even` tokens, and stay within `most`. */
function filled(lengths: readonly number[], even: number, most: number): { first: number; last: number }[] {
  const batches: { first: number; last: number; tokens: number }[] = [];
  for (const [sequence, length] of lengths.entries()) {
    const batch = batches.at(-1);
    if (batch && batch.tokens < even && batch.tokens + length <= most) {
      batch.last = sequence + 1;
      batch.tokens += length;
    } else {
      batches.push({ first: sequence, last: sequence + 1, tokens: length });
    }
  }
  return batches;
}

/** Bytes of text in the predicted tokens, all but the first of each sequence; null if a token's are unknown. */
function predictedBytes({ ids, lengths }: TokenBatch, bytes: Map<number, number> | null): number | null {
  let sum = 0;
  let at = 0;
  for (const length of lengths) {
    for (const id of ids.subarray(at + 1, at + length)) {
      const known = bytes?.get(id);
      if (known === undefined) return null;
      sum += known;
    }
    at += length;
  }
  return sum;
}

/** From the tokenizer.json of the folder that a GGUF file was made from, else the model's own. */
async function bytesByToken(model: OpenedModel, source: OpenedModel | undefined): Promise<Map<number, number> | null> {
  return (source && (await tokenBytesOf(source))) ?? tokenBytesOf(model);
}

export async function evaluateModel(
  { instance, pool, memory }: Workshop,
  model: OpenedModel,
  source: OpenedModel | undefined,
  options: EvaluateOptions,
): Promise<Evaluation> {
  check(options, evaluateOptions, 'options');
  check(options.tokens, 'object', 'tokens');
  const started = performance.now();
  const { signal } = options;
  signal?.throwIfAborted();
  const { activations = 'float32', bytesPerToken } = options;
  if (activations !== 'float32' && activations !== 'int8')
    throw failure('argument-invalid', 'activations', `"${String(activations)}" is neither float32 nor int8`);
  if (bytesPerToken !== undefined && !(bytesPerToken > 0 && Number.isFinite(bytesPerToken)))
    throw failure('argument-invalid', 'bytesPerToken', `${bytesPerToken} is not a positive number`);
  const { tokens, plan } = await forwardBatchOf(instance, model, options, { runs: true, source });
  const steps = plan.steps.map(({ name, tensors }): ForwardStep => ({ name, tensors }));
  const batches = batchesOf(memory, plan, tokens.lengths).map(({ first, last }) => {
    const { ids, lengths } = partOf(tokens, first, last);
    const work: ForwardWork = { config: plan.config, activations, steps, reads: 0, tokens: ids, lengths };
    return { work, label: `sequences ${first} to ${last - 1}` };
  });

  const tensors = steps.flatMap((step) => step.tensors);
  const modelBytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const progress = new ProgressMeter(options.onProgress, tensors.length * batches.length, modelBytes * batches.length);
  const losses = await withMaterials(pool, { models: [model], work: [plan.work] }, (context) =>
    runBatches(batches, context),
  );
  progress.finish('evaluate');
  return summary(losses);

  async function runBatches(all: typeof batches, run: RunContext): Promise<number[]> {
    const { controller: stop, unlink } = linkedController(signal);
    const running = all.map(async ({ work, label }) => {
      const part = { kind: 'forward' as const, ...work };
      const result = await pool.run(run, { label, bytes: modelBytes, parts: [part] }, stop.signal, (done) =>
        progress.advance({ ...done, phase: 'evaluate' }),
      );
      return [...(result.parts[0] ?? [])];
    });
    try {
      return (await Promise.all(running)).flat();
    } catch (error) {
      stop.abort(error);
      await Promise.allSettled(running);
      throw error;
    } finally {
      unlink();
    }
  }

  async function summary(sequenceLosses: number[]): Promise<Evaluation> {
    const nats = sequenceLosses.reduce((sum, loss) => sum + loss, 0);
    const sequences = tokens.lengths.length;
    const predicted = tokens.ids.length - sequences;
    const bytes =
      bytesPerToken === undefined
        ? predictedBytes(tokens, await abortable(signal, bytesByToken(model, source)))
        : predicted * bytesPerToken;
    return {
      bitsPerByte: bytes === null || bytes === 0 ? null : nats / Math.LN2 / bytes,
      bitsPerToken: nats / Math.LN2 / predicted,
      perplexity: Math.exp(nats / predicted),
      tokens: predicted,
      bytes,
      sequences,
      length: longestOf(tokens),
      sequenceLosses,
      durationMs: performance.now() - started,
      threads: memory.threads,
    };
  }
}
