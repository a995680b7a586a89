// Losses of schemes on the same samples: windows of text, feeds, or the weights themselves. A scheme is asked for samples [first, last).

import { failure, QuantizationError } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { CurveMetric, CurveOptions, EvaluateOptions, Evaluation, TextInput } from '../api/types.js';
import { cosine } from '../language_model/agreement.js';
import { embedTokens, isEncoder } from '../language_model/embeddings.js';
import { bytesOfText, evaluateModel } from '../language_model/evaluate.js';
import { embeddingHeadOf } from '../language_model/sentence_modules.js';
import type { OpenedModel } from '../model/model.js';
import { requireRuntime } from '../model/onnx_session.js';
import { type TurnTimes, turnTimesOf } from '../model/onnx_speed.js';
import { partOf, type TokenBatch } from '../model/tokens.js';
import { forwardBatchOf, forwardPlanOf } from '../plan/forward_plan.js';
import type { RunResources } from '../pool/run_resources.js';
import { OutputErrors } from './outputs.js';
import { meanDifference } from './shape.js';

/** What was found of one model so far. */
export interface Found {
  /** By sample, added to at each round. */
  samples: number[];
  loss: number;
  error?: number;
}

/** How losses are measured. */
export interface Judge {
  kind: CurveMetric['kind'];
  name: string;
  /** Ends of the rounds: more samples are measured until their order is safe. */
  rounds: readonly number[];
  /** Measures samples [first, last), and tells the loss of all so far. `original`: what was found of that. */
  measure(
    model: OpenedModel,
    first: number,
    last: number,
    before: Found | null,
    original: Found | null,
  ): Promise<Found>;
  /** Whether the original is measured, too; else its loss is 0. */
  measuresOriginal: boolean;
  /** Of a run, in turns with the original; null: not wanted. */
  time: ((model: OpenedModel) => Promise<TurnTimes>) | null;
}

/** Windows of text: by default more of them until the order is safe. */
const usualRounds = [8, 16, 32];

/** KLD has errors of its own, over tokens, and is not measured in rounds. */
const usualKldWindows = 16;

/** Windows as long as a few sentences: the mean of many tokens hides errors. */
const embeddingTokens = 64;
const usualEmbeddings = 16;

interface TextOptions
  extends Pick<CurveOptions, 'text' | 'tokenizer' | 'tokens' | 'windows' | 'signal' | 'onProgress'> {}

function inputOf({ text, tokenizer, tokens }: TextOptions): EvaluateOptions['tokens'] | null {
  if (text !== undefined && tokens !== undefined)
    throw failure('argument-invalid', 'tokens', 'and text: give one of the two');
  if (text === undefined) return tokens ?? null;
  return { text, tokenizer } as TextInput; // what is missing, tokensOfText says
}

function roundsOf(windows: number | undefined, most: number, usual: readonly number[]): number[] {
  if (windows !== undefined) return [Math.min(windows, most)];
  return [...usual.filter((end) => end < most), Math.min(most, usual.at(-1) ?? most)];
}

/** Judges predictions of text; null without text. Errors: those of `evaluate`. */
async function textJudge(resources: RunResources, model: OpenedModel, options: TextOptions): Promise<Judge | null> {
  const input = inputOf(options);
  if (!input) return null;
  const { tokens } = await forwardBatchOf(resources.instance, model, { tokens: input }, { use: 'run' });
  const evaluate = (of: OpenedModel, first: number, last: number, against?: OpenedModel) =>
    evaluateModel(resources, of, of === model ? undefined : model, {
      tokens: { rows: rowsOf(partOf(tokens, first, last)) },
      ...(against && { against }),
      ...(options.signal && { signal: options.signal }),
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
  const windows = tokens.lengths.length;
  const rounds = roundsOf(options.windows, windows, usualRounds);
  const bytesUntil = (end = 0) => bytesOfText(model, partOf(tokens, 0, end));
  // One token that the tokenizer does not spell makes the bytes unknown; special tokens have none.
  if (!(await bytesUntil(rounds[0])) || !(await bytesUntil(rounds.at(-1)))) {
    const measure: Judge['measure'] = async (of, first, last) => divergenceOf(await evaluate(of, first, last, model));
    const all = [Math.min(windows, options.windows ?? usualKldWindows)];
    return { kind: 'kld', name: 'KLD to the original', rounds: all, measure, measuresOriginal: false, time: null };
  }
  const bytesOf = new Map<number, number>(); // of windows [0, end)
  const measure: Judge['measure'] = async (of, first, last, before, original) => {
    const found = await evaluate(of, first, last);
    bytesOf.set(last, (bytesOf.get(first) ?? 0) + (found.bytes ?? 0));
    const bitsOf = (nats: number) => nats / Math.LN2 / (bytesOf.get(last) ?? Number.NaN);
    const samples = [...(before?.samples ?? []), ...found.sequenceLosses];
    const loss = bitsOf(samples.reduce((sum, each) => sum + each, 0));
    if (!original || samples.length < 2) return { samples, loss };
    return { samples, loss, error: bitsOf(meanDifference(samples, original.samples).error * samples.length) };
  };
  return { kind: 'bits-per-byte', name: 'bits per byte', rounds, measure, measuresOriginal: true, time: null };
}

/** Judges an encoder's embeddings of windows of text; null without text. */
async function embeddingJudge(
  resources: RunResources,
  model: OpenedModel,
  options: TextOptions,
): Promise<Judge | null> {
  const input = inputOf(options);
  if (!input) return null;
  const { maxPositions } = forwardPlanOf(resources.instance, model, 2, { use: 'embed' });
  const short = { length: Math.min(embeddingTokens, maxPositions) };
  const given = 'text' in input ? { ...short, ...input } : input;
  const { tokens } = await forwardBatchOf(resources.instance, model, { tokens: given }, { use: 'embed' });
  const windows = Math.min(options.windows ?? usualEmbeddings, tokens.lengths.length);
  const { signal, onProgress } = options;
  const pass = { head: await embeddingHeadOf(resources, [model]), signal, onProgress };
  const wanted = partOf(tokens, 0, windows);
  const [expected = []] = await embedTokens(resources, [model], wanted, pass);
  const measure: Judge['measure'] = async (of) => {
    const [found = []] = await embedTokens(resources, [of], wanted, { ...pass, source: model });
    const samples = found.map((vector, i) => 1 - cosine(vector, expected[i] as Float32Array));
    return { samples, loss: Math.max(0, samples.reduce((sum, each) => sum + each, 0) / samples.length) };
  };
  const name = '1 − cosine of embeddings';
  return { kind: 'embedding-error', name, rounds: [windows], measure, measuresOriginal: false, time: null };
}

function rowsOf({ ids, lengths }: TokenBatch): Int32Array[] {
  let at = 0;
  return lengths.map((length) => {
    at += length;
    return ids.subarray(at - length, at);
  });
}

function divergenceOf({ divergence }: Evaluation): Found {
  if (!divergence) throw new RangeError('an evaluation against a model has a divergence');
  return { samples: [], loss: divergence.meanKld, error: divergence.meanKldError };
}

async function outputJudge(model: OpenedModel, options: CurveOptions): Promise<Judge> {
  const errors = await OutputErrors.of(model, options);
  const measure: Judge['measure'] = async (of) => {
    const samples = await errors.measure(of, options.signal);
    return { samples, loss: samples.reduce((sum, each) => sum + each, 0) / samples.length };
  };
  const rounds = [errors.feeds.length];
  const name = `relative error of outputs${errors.areMadeUp ? ' for made-up inputs' : ''}`;
  const time = (of: OpenedModel) => turnTimesOf(errors.runtime, [model, of], errors.timed, options);
  return {
    kind: 'output-error',
    name,
    rounds,
    measure,
    measuresOriginal: false,
    time: options.measureSpeed ? time : null,
  };
}

const isNotOurs = (error: unknown) =>
  error instanceof QuantizationError &&
  ['not-implemented', 'config-invalid', 'format-unsupported'].includes(error.code);

/** Errors: argument-invalid for models whose speed is not measured here, and without a runtime. */
function requireTimable({ format }: OpenedModel, { runtime }: CurveOptions): void {
  const { title, hasGraph } = formats.inputs[format];
  const detail = `is for ONNX models, which the module in runtime runs; what will run a model of the format ${title} is not here`;
  if (!hasGraph) throw failure('argument-invalid', 'measureSpeed', detail);
  requireRuntime(runtime);
}

/** How the model can be judged with what was given; null: by its weights, and why. */
export async function judgeFor(
  resources: RunResources,
  model: OpenedModel,
  options: CurveOptions,
): Promise<{ judge: Judge | null; reason?: string }> {
  const { measureSpeed = false } = options;
  if (measureSpeed) requireTimable(model, options);
  try {
    if (model.format === 'onnx') {
      if (options.runtime) return { judge: await outputJudge(model, options) };
      return { judge: null, reason: 'no runtime was given, so the model was not run' };
    }
    const judgeOf = isEncoder(resources.instance, model, undefined) ? embeddingJudge : textJudge;
    const judge = await judgeOf(resources, model, options);
    return judge ? { judge } : { judge };
  } catch (error) {
    if (measureSpeed || !isNotOurs(error)) throw error;
    return { judge: null, reason: error instanceof QuantizationError ? error.message : '' };
  }
}
