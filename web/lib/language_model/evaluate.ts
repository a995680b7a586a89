// Perplexity and bits per byte, and the divergence from a reference. Losses are added in sequence order, so the split among workers
// does not matter.

import { checkedWith } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { evaluateOptions } from '../api/language_model_kinds.js';
import type { EvaluateOptions, Evaluation } from '../api/types.js';
import type { MemoryPlan } from '../engine/memory.js';
import { abortable, together } from '../io/abort.js';
import { OpenedModel } from '../model/model.js';
import { tokenBytesOf } from '../model/token_bytes.js';
import { longestOf, partOf, type TokenBatch, type Windows } from '../model/tokens.js';
import { type ForwardPlanJson, forwardBatchOf, forwardOverheadBytes, forwardPlanOf } from '../plan/forward_plan.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunResources, withRunInputs } from '../pool/run_resources.js';
import {
  type Activations,
  type ForwardWork,
  type JobPart,
  valuesPerPosition,
  type WorkProgress,
} from '../worker/jobs.js';
import { divergenceOf } from './divergence.js';

/** What of a plan decides how many tokens fit. */
type PassMemory = Pick<ForwardPlanJson, 'tokenBytes' | 'workingBytes'> & { steps: readonly { floatBytes: number }[] };

/** A reference and a model in one worker. */
export function bothOf(plans: readonly ForwardPlanJson[]): PassMemory {
  const sum = (of: (plan: ForwardPlanJson) => number) => plans.reduce((all, plan) => all + of(plan), 0);
  const blocks = sum(({ steps }) => Math.max(...steps.map(({ floatBytes }) => floatBytes)));
  return {
    tokenBytes: sum(({ tokenBytes }) => tokenBytes),
    workingBytes: sum(({ workingBytes }) => workingBytes),
    steps: [{ floatBytes: blocks }],
  };
}

/** Splits sequences into batches [first, last) that fit the workers' memory, as even as whole sequences can be. Errors:
 * memory-budget. */
export function batchesOf(
  memory: MemoryPlan,
  plan: PassMemory,
  lengths: readonly number[],
): { first: number; last: number }[] {
  const stepBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const fixed = stepBytes + plan.workingBytes + forwardOverheadBytes;
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

/** The first position of a sequence whose next token is scored. */
const firstScored = (length: number, scored: Scored) => (scored === 'all' ? 0 : Math.floor(length / 2));

type Scored = NonNullable<EvaluateOptions['scored']>;

/** Scored positions of each sequence. */
const scoredCounts = (lengths: readonly number[], scored: Scored) =>
  lengths.map((length) => Math.max(0, length - 1 - firstScored(length, scored)));

/** Bytes of text in the scored tokens; null if a token's are unknown. */
function scoredBytes({ ids, lengths }: TokenBatch, scored: Scored, bytes: Map<number, number> | null): number | null {
  let sum = 0;
  let at = 0;
  for (const length of lengths) {
    for (const id of ids.subarray(at + 1 + firstScored(length, scored), at + length)) {
      const known = bytes?.get(id);
      if (known === undefined) return null;
      sum += known;
    }
    at += length;
  }
  return sum;
}

/** Bytes of the text that all tokens but the first of each sequence spell; null if one of them is unknown. */
export async function bytesOfText(model: OpenedModel, tokens: TokenBatch): Promise<number | null> {
  return scoredBytes(tokens, 'all', await bytesByToken([model]));
}

/** From the first tokenizer.json: of the folder that a GGUF file was made from, of the model, of the reference. */
async function bytesByToken(models: readonly (OpenedModel | undefined)[]): Promise<Map<number, number> | null> {
  for (const model of models) {
    const bytes = model && (await tokenBytesOf(model));
    if (bytes) return bytes;
  }
  return null;
}

/** Names the defaults. */
function settingsOf(model: OpenedModel, options: EvaluateOptions) {
  const { bytesPerToken, against } = options;
  if (bytesPerToken !== undefined && !(bytesPerToken > 0 && Number.isFinite(bytesPerToken)))
    throw failure('argument-invalid', 'bytesPerToken', `${bytesPerToken} is not a positive number`);
  if (against !== undefined && !(against instanceof OpenedModel))
    throw failure('argument-invalid', 'against', 'was not opened by this library');
  const isGguf = model.format === 'gguf';
  const activations = options.activations ?? (against && isGguf ? 'gguf' : 'float32');
  if (activations === 'gguf' && !isGguf) {
    const detail = `gguf is how inputs of GGUF files are rounded; this is ${model.format}: give float32 or int8`;
    throw failure('argument-invalid', 'activations', detail);
  }
  const scored: Scored = options.scored ?? (against ? 'second-half' : 'all');
  const referenceActivations: Activations = activations === 'gguf' && against?.format === 'gguf' ? 'gguf' : 'float32';
  return { activations, referenceActivations, bytesPerToken, against, scored };
}

/** The parts of a batch's job: its forward pass, or both passes. */
function partOfBatch(plans: readonly ForwardPlanJson[], settings: BatchSettings, batch: TokenBatch): JobPart {
  const [model, reference] = plans.map(({ architecture, steps }, number): ForwardWork => {
    const { ids: tokens, lengths } = batch;
    const activations = number === 0 ? settings.activations : settings.referenceActivations;
    return {
      architecture,
      activations,
      scored: settings.scored,
      steps,
      reads: number,
      model: number,
      tokens,
      lengths,
    };
  }) as [ForwardWork, ForwardWork | undefined];
  return reference ? { kind: 'divergence', reference, models: [model] } : { kind: 'forward', ...model };
}
type BatchSettings = Required<Pick<ForwardWork, 'activations' | 'scored'>> & { referenceActivations: Activations };

export async function evaluateModel(
  { instance, pool, memory }: RunResources,
  model: OpenedModel,
  source: OpenedModel | undefined,
  given: EvaluateOptions,
  runSignal?: AbortSignal,
): Promise<Evaluation> {
  const options = checkedWith(given, evaluateOptions, runSignal);
  const settings = settingsOf(model, options);
  const started = performance.now();
  const { signal } = options;
  signal?.throwIfAborted();
  const { against, bytesPerToken } = settings;
  const windows: Windows = settings.scored === 'all' ? 'adjoining' : 'overwritten';
  const { tokens, plan } = await forwardBatchOf(instance, model, options, { use: 'run', source, windows });
  const scored = plan.splits ? 'second-half' : settings.scored;
  const counts = scoredCounts(tokens.lengths, scored);
  const predicted = counts.reduce((sum, count) => sum + count, 0);
  if (predicted === 0)
    throw failure('argument-invalid', 'tokens', 'sequences of 2 tokens have no second half to score; give longer ones');
  const plans = [
    plan,
    ...(against ? [forwardPlanOf(instance, against, longestOf(tokens), { use: 'run', source })] : []),
  ];
  const batches = batchesOf(memory, bothOf(plans), tokens.lengths).map(({ first, last }) => ({
    part: partOfBatch(plans, settings, partOf(tokens, first, last)),
    label: `sequences ${first} to ${last - 1}`,
  }));

  const tensors = plans.flatMap(({ steps }) => steps.flatMap((step) => step.tensors));
  const modelBytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const progress = new ProgressMeter(options.onProgress, tensors.length * batches.length, modelBytes * batches.length);
  const runInputs = { models: [model, ...(against ? [against] : [])], work: plans.map(({ work }) => work) };
  const found = await withRunInputs(pool, runInputs, (context) => runBatches(batches, context));
  progress.finish('evaluate');
  return summary(found);

  async function runBatches(all: typeof batches, run: RunContext): Promise<number[]> {
    const advance = (done: WorkProgress) => progress.advance({ ...done, phase: 'evaluate' });
    const results = await together(signal, (stop) =>
      all.map(({ part, label }) => pool.run(run, { label, bytes: modelBytes, parts: [part] }, stop, advance)),
    );
    return results.flatMap(({ parts }) => [...(parts[0] as Float64Array)]);
  }

  async function summary(values: number[]): Promise<Evaluation> {
    if (!values.every(Number.isFinite))
      throw failure('value-not-finite', 'logits', 'are NaN or infinite; the weights hold such values, or overflow');
    const sequenceLosses = against ? lossesOf(values, counts) : values;
    const nats = sequenceLosses.reduce((sum, loss) => sum + loss, 0);
    const bytes =
      bytesPerToken === undefined
        ? scoredBytes(tokens, scored, await abortable(signal, bytesByToken([source, model, against])))
        : predicted * bytesPerToken;
    return {
      bitsPerByte: bytes === null || bytes === 0 ? null : nats / Math.LN2 / bytes,
      bitsPerToken: nats / Math.LN2 / predicted,
      perplexity: Math.exp(nats / predicted),
      activations: settings.activations,
      scored,
      tokens: predicted,
      bytes,
      sequences: tokens.lengths.length,
      length: longestOf(tokens),
      sequenceLosses,
      ...(against && { divergence: divergenceOf(values) }),
      durationMs: performance.now() - started,
      threads: memory.threads,
    };
  }
}

/** Sums of the model's losses over the scored positions of each sequence. */
function lossesOf(values: readonly number[], counts: readonly number[]): number[] {
  let at = 0;
  return counts.map((count) => {
    let sum = 0;
    for (const end = at + count; at < end; ++at) sum += values[at * valuesPerPosition + 1] ?? Number.NaN;
    return sum;
  });
}
