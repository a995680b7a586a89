// Perplexity and bits per byte. Losses are added in sequence order, so the split among workers does not matter.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { evaluateOptions } from '../api/language_model_kinds.js';
import type { EvaluateOptions, Evaluation } from '../api/types.js';
import type { MemoryPlan } from '../engine/memory.js';
import { abortable, linkedController } from '../io/abort.js';
import type { OpenedModel } from '../model/model.js';
import { tokenBytesOf } from '../model/token_bytes.js';
import type { TokenBatch } from '../model/tokens.js';
import { type ForwardPlanJson, forwardBatchOf, forwardBesidesBytes } from '../plan/forward_plan.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { type Workshop, withMaterials } from '../pool/workshop.js';
import type { ForwardStep, ForwardWork } from '../worker/jobs.js';

/** Errors: memory-budget. */
export function batchSize(
  memory: MemoryPlan,
  plan: ForwardPlanJson,
  { sequences, length }: Pick<TokenBatch, 'sequences' | 'length'>,
): number {
  const stepBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const fixed = stepBytes + plan.workingBytes + forwardBesidesBytes;
  const perSequence = length * plan.tokenBytes;
  for (let workers = Math.min(Math.max(1, memory.threads), sequences); workers >= 1; --workers) {
    const fitting = Math.floor((memory.shareBytes / workers - fixed) / perSequence);
    const even = Math.ceil(sequences / workers);
    if (fitting >= 1) return Math.ceil(sequences / (workers * Math.ceil(even / Math.min(even, fitting))));
  }
  const needed = fixed + perSequence + memory.hostBytes;
  const detail = `the largest block as float32 and one sequence need ${needed} bytes; give that much, or shorter sequences`;
  throw failure('memory-budget', 'memoryBudgetBytes', detail);
}

/** Bytes of text in the predicted tokens; null if a token's are unknown. */
function predictedBytes({ ids, length }: TokenBatch, bytes: Map<number, number> | null): number | null {
  let sum = 0;
  for (const [i, id] of ids.entries()) {
    if (i % length === 0) continue;
    const known = bytes?.get(id);
    if (known === undefined) return null;
    sum += known;
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
  const perBatch = batchSize(memory, plan, tokens);
  const steps = plan.steps.map(({ name, tensors }): ForwardStep => ({ name, tensors }));
  const batches: ForwardWork[] = [];
  for (let first = 0; first < tokens.sequences; first += perBatch) {
    const last = Math.min(first + perBatch, tokens.sequences);
    batches.push({
      config: plan.config,
      activations,
      steps,
      reads: 0,
      tokens: tokens.ids.slice(first * tokens.length, last * tokens.length),
      length: tokens.length,
    });
  }

  const tensors = steps.flatMap((step) => step.tensors);
  const modelBytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const progress = new ProgressMeter(options.onProgress, tensors.length * batches.length, modelBytes * batches.length);
  const losses = await withMaterials(pool, { models: [model], work: [plan.work] }, (context) =>
    runBatches(batches, context),
  );
  progress.finish('evaluate');
  return summary(losses);

  async function runBatches(work: ForwardWork[], run: RunContext): Promise<number[]> {
    const { controller: stop, unlink } = linkedController(signal);
    const running = work.map(async (batch, item) => {
      const last = batch.tokens.length / batch.length;
      const label = `sequences ${item * perBatch} to ${item * perBatch + last - 1}`;
      const part = { kind: 'forward' as const, ...batch };
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
    const predicted = tokens.sequences * (tokens.length - 1);
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
      sequences: tokens.sequences,
      length: tokens.length,
      sequenceLosses,
      durationMs: performance.now() - started,
      threads: memory.threads,
    };
  }
}
