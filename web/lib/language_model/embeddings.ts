// Embeddings of texts, in batches that fit the workers' memory; a text's embedding does not depend on the others in its batch.

import { check, checkedWith, shown } from '../api/arguments.js';
import { failure, QuantizationError } from '../api/errors.js';
import { embeddingOptions } from '../api/language_model_kinds.js';
import type { EmbeddingOptions, Embeddings } from '../api/language_model_types.js';
import type { Instance } from '../engine/instance.js';
import { together } from '../io/abort.js';
import { OpenedModel } from '../model/model.js';
import { cutTexts } from '../model/text_tokens.js';
import { longestOf, partOf, type TokenBatch, tokenBatch } from '../model/tokens.js';
import { type ForwardPlanJson, forwardPlanOf } from '../plan/forward_plan.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunResources, withRunInputs } from '../pool/run_resources.js';
import { agreementOf } from './agreement.js';
import { batchesOf } from './evaluate.js';
import { type EmbeddingHead, embeddingHeadOf } from './sentence_modules.js';

const usualLength = 256;
const leastTexts = 3; // fewer have no order

const invalid = (where: string, detail: string) => failure('argument-invalid', where, detail);

/** By its config; what else is wrong with it is said when it runs. */
export function isEncoder(instance: Instance, model: OpenedModel, source: OpenedModel | undefined): boolean {
  try {
    forwardPlanOf(instance, model, 2, { use: 'compare', source });
    return true;
  } catch (error) {
    if (!(error instanceof QuantizationError)) throw error;
    return error.code === 'tensor-missing' || error.code === 'shape-mismatch' || error.code === 'dtype-unsupported';
  }
}

/** Checks the options. */
function settingsOf(options: EmbeddingOptions) {
  const { tokenizer, against, length } = options;
  const texts = check(options.texts, 'strings', 'texts');
  if (typeof tokenizer?.encode !== 'function')
    throw invalid('tokenizer', 'with encode(text) is needed, such as the one of @huggingface/tokenizers');
  if (against !== undefined && !(against instanceof OpenedModel))
    throw invalid('against', 'was not opened by this library');
  if (length !== undefined && (!Number.isInteger(length) || length < 2))
    throw invalid('length', `${shown(length)} is not an integer of at least 2`);
  const least = against ? leastTexts : 1;
  if (texts.length < least)
    throw invalid(
      'texts',
      `${texts.length} given; at least ${least} are needed${against ? ' to compare their order' : ''}`,
    );
  return { texts, tokenizer, against, length, activations: options.activations ?? 'float32' } as const;
}

/** What embeddings are made with. */
export interface EmbeddingPass {
  head: EmbeddingHead;
  activations?: 'float32' | 'int8';
  /** The folder that GGUF files were made from. */
  source?: OpenedModel | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: EmbeddingOptions['onProgress'];
}

const planOf = (instance: Instance, model: OpenedModel, longest: number, source?: OpenedModel) =>
  forwardPlanOf(instance, model, longest, { use: 'embed', source });

/** Embeddings of length 1 of the sequences, by model. */
export async function embedTokens(
  { instance, pool, memory }: RunResources,
  models: readonly OpenedModel[],
  tokens: TokenBatch,
  { head, activations = 'float32', source, signal, onProgress }: EmbeddingPass,
): Promise<Float32Array[][]> {
  const plans = models.map((each) => planOf(instance, each, longestOf(tokens), source));
  const jobs = plans.flatMap((plan, number) =>
    batchesOf(memory, plan, tokens.lengths).map((batch) => ({ plan, number, batch })),
  );
  const tensorsOf = (plan: ForwardPlanJson) => plan.steps.flatMap((step) => step.tensors);
  const bytesOf = (plan: ForwardPlanJson) => tensorsOf(plan).reduce((sum, { bytes }) => sum + bytes, 0);
  const progress = new ProgressMeter(
    onProgress,
    jobs.reduce((sum, { plan }) => sum + tensorsOf(plan).length, 0),
    jobs.reduce((sum, { plan }) => sum + bytesOf(plan), 0),
  );
  const embed = async (
    context: RunContext,
    { plan, number, batch: { first, last } }: (typeof jobs)[number],
    stop: AbortSignal,
  ) => {
    const { ids, lengths } = partOf(tokens, first, last);
    const work = {
      architecture: plan.architecture,
      activations,
      steps: plan.steps,
      reads: number,
      model: number,
      tokens: ids,
      lengths,
      pooling: head.pooling,
    };
    const job = {
      label: `texts ${first} to ${last - 1}`,
      bytes: bytesOf(plan),
      parts: [{ kind: 'embed' as const, ...work }],
    };
    const result = await pool.run(context, job, stop, (done) => progress.advance({ ...done, phase: 'evaluate' }));
    const values = result.parts[0] as Float32Array;
    const width = values.length / lengths.length;
    return lengths.map((_, text) => {
      const vector = head.finish(values.slice(text * width, (text + 1) * width));
      if (vector.every(Number.isFinite)) return vector;
      throw failure(
        'value-not-finite',
        `text ${first + text}`,
        'has an embedding with values that are NaN or infinite',
      );
    });
  };
  const results = await withRunInputs(pool, { models, work: plans.map(({ work }) => work) }, (context) =>
    together(signal, (stop) => jobs.map((job) => embed(context, job, stop))),
  );
  progress.finish('evaluate');
  return models.map((_, model) => results.filter((_, i) => jobs[i]?.number === model).flat());
}

export async function embedTexts(
  resources: RunResources,
  model: OpenedModel,
  source: OpenedModel | undefined,
  given: EmbeddingOptions,
  runSignal?: AbortSignal,
): Promise<Embeddings> {
  const options = checkedWith(given, embeddingOptions, runSignal);
  const started = performance.now();
  const { texts, tokenizer, against, length, activations } = settingsOf(options);
  const head = await embeddingHeadOf(resources, [model, source, against], options.pooling);
  const { vocabulary, maxPositions } = planOf(resources.instance, model, 2, source);
  const rows = cutTexts(tokenizer, texts, Math.min(length ?? usualLength, maxPositions));
  const empty = rows.findIndex((row) => row.length === 0);
  if (empty >= 0) throw invalid('texts', `number ${empty} has no tokens`);
  const tokens = await tokenBatch({ rows }, undefined, vocabulary, maxPositions);
  const models = [model, ...(against ? [against] : [])];
  const { signal, onProgress } = options;
  const pass = { head, activations, source, signal, onProgress };
  const [vectors = [], reference = []] = await embedTokens(resources, models, tokens, pass);
  if (against && reference[0]?.length !== vectors[0]?.length)
    throw invalid('against', `has embeddings of ${reference[0]?.length} values, the model of ${vectors[0]?.length}`);
  return {
    vectors,
    pooling: head.pooling,
    dense: head.dense,
    tokens: tokens.ids.length,
    ...(against && { agreement: agreementOf(vectors, reference) }),
    durationMs: performance.now() - started,
    threads: resources.memory.threads,
  };
}
