// How far the outputs of a quantized ONNX model are from the original's, in ONNX Runtime.

import { failure, QuantizationError } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { ComparedOutput, CompareOptions, CurveOptions, OutputComparison } from '../api/types.js';
import { arrayName } from '../api/values.js';
import { feedsOf } from '../model/array_feeds.js';
import { fromHalf } from '../model/half.js';
import { OpenedModel } from '../model/model.js';
import { inputsOf, layerValuesOf } from '../model/onnx_inputs.js';
import {
  createSession,
  type Feed,
  type Runtime,
  type RuntimeSession,
  ran,
  requireRuntime,
  type TensorClass,
} from '../model/onnx_session.js';
import { speedOf, turnTimesOf } from '../model/onnx_speed.js';
import { type FeedGuess, feedGuesses, generatedFeeds, timedGuess } from './generated_feeds.js';

type Values = Float32Array | Float64Array;

interface Output {
  shape: readonly number[];
  values: Values;
}

/** What the original gives for one feed, by output. */
type Outputs = Map<string, Output>;

/** Feeds, and what the original gives for them. */
interface Runs {
  feeds: Feed[];
  expected: Outputs[];
}

/** Made-up feeds that ran, and how they were guessed. */
interface MadeRuns extends Runs {
  guess: FeedGuess;
}

type WithTensors = Runtime & { Tensor: TensorClass };

/** Feeds that are made up. */
const generatedCount = 4;

function floatsOf(type: string, data: unknown): Values | null {
  if (/^Float(32|64)Array$/.test(arrayName(data) ?? '')) return data as Values;
  if (type === 'float16' && ArrayBuffer.isView(data))
    return fromHalf(new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2));
  return null;
}

async function outputsOf(session: RuntimeSession, feed: Feed, names: readonly string[], number: number) {
  const found: Outputs = new Map();
  for (const [name, tensor] of Object.entries(await ran(session, feed, names, number))) {
    const values = floatsOf(tensor.type, tensor.getData ? await tensor.getData() : tensor.data);
    if (values) found.set(name, { shape: [...tensor.dims], values: values.slice() });
    tensor.dispose?.();
  }
  return found;
}

/**
 * Root of squared errors over squared values of an output; null if there are only zeros and no errors. Values that are not finite, and the
 * same in both, do not count; if they differ, the error is infinite.
 */
function errorOf(expected: Values, found: Values | undefined): number | null {
  if (found?.length !== expected.length) return 1; // a detector that finds another number of things
  let [squares, errors] = [0, 0];
  for (let i = 0; i < expected.length; ++i) {
    const [was, is] = [expected[i] as number, found[i] as number];
    if (Object.is(was, is) || (Number.isNaN(was) && Number.isNaN(is))) {
      if (Number.isFinite(was)) squares += was * was;
      continue;
    }
    if (!Number.isFinite(was - is)) return Number.POSITIVE_INFINITY;
    squares += was * was;
    errors += (was - is) ** 2;
  }
  return squares === 0 && errors === 0 ? null : Math.sqrt(errors / squares);
}

const mean = (list: readonly number[]) =>
  list.length === 0 ? 0 : list.reduce((sum, each) => sum + each, 0) / list.length;

async function withSession<T>(
  runtime: Runtime,
  model: OpenedModel,
  use: (session: RuntimeSession) => Promise<T>,
): Promise<T> {
  const session = await createSession(runtime, model, [], layerValuesOf(model).locations);
  try {
    return await use(session);
  } finally {
    await session.release();
  }
}

/** The original's outputs, and the feeds that they are of. */
export class OutputErrors {
  private constructor(
    readonly runtime: Runtime,
    readonly feeds: readonly Feed[],
    readonly expected: readonly Outputs[],
    readonly names: readonly string[],
    readonly areMadeUp: boolean,
    /** Feeds for the time of a run. */
    readonly timed: readonly Feed[],
  ) {}

  /** Errors: argument-invalid (no runtime, no feeds, or ones that the model does not take). */
  static async of(
    model: OpenedModel,
    {
      runtime,
      feeds,
      windows,
      measureSpeed,
      signal,
    }: Pick<CurveOptions, 'runtime' | 'feeds' | 'windows' | 'measureSpeed' | 'signal'>,
  ): Promise<OutputErrors> {
    requireRuntime(runtime);
    const { outputs: names } = layerValuesOf(model);
    return withSession(runtime, model, async (session) => {
      const run = async (given: Iterable<Feed> | AsyncIterable<Feed>): Promise<Runs> => {
        const done: Runs = { feeds: [], expected: [] };
        for await (const feed of given) {
          if (done.feeds.length === windows) break;
          signal?.throwIfAborted();
          done.expected.push(await outputsOf(session, feed, names, done.feeds.length));
          done.feeds.push(feed);
        }
        return done;
      };
      const given = feeds instanceof OpenedModel ? feedsOf(runtime as WithTensors, model, feeds) : feeds;
      const made = given ? null : await runMade(runtime as WithTensors, model, windows ?? generatedCount, run);
      const done = made ?? (await run(typeof given === 'function' ? given() : (given as Iterable<Feed>)));
      if (done.feeds.length === 0)
        throw failure(
          'argument-invalid',
          'feeds',
          'the list is empty; give at least one feed, or leave the option out',
        );
      if (done.expected.every(({ size }) => size === 0))
        throw failure('format-unsupported', model.name, 'none of its outputs has floating-point values to compare');
      const pictures =
        measureSpeed && made
          ? generatedFeeds((runtime as WithTensors).Tensor, model, inputsOf(model), 1, timedGuess(made.guess))
          : null;
      const timed = pictures && (await runs(session, pictures, names)) ? pictures : done.feeds;
      return new OutputErrors(runtime, done.feeds, done.expected, names, !given, timed);
    });
  }

  /** The error of each feed. `onOutput`: each output that has one. */
  async measure(
    model: OpenedModel,
    signal: AbortSignal | undefined,
    onOutput?: (output: ComparedOutput) => void,
  ): Promise<number[]> {
    return withSession(this.runtime, model, async (session) => {
      const errors: number[] = [];
      for (const [feed, given] of this.feeds.entries()) {
        signal?.throwIfAborted();
        const found = await outputsOf(session, given, this.names, feed);
        const ofFeed: number[] = [];
        for (const [name, { shape, values: reference }] of this.expected[feed] ?? new Map<string, Output>()) {
          const quantized = found.get(name)?.values;
          const error = errorOf(reference, quantized);
          if (error !== null) ofFeed.push(error);
          onOutput?.({ feed, name, shape, reference, quantized: quantized ?? new Float32Array(), error: error ?? 0 });
        }
        errors.push(mean(ofFeed));
      }
      return errors;
    });
  }
}

/** Whether a model takes feeds: some have only one size that is possible, and do not say so. */
async function runs(session: RuntimeSession, feeds: readonly Feed[], names: readonly string[]): Promise<boolean> {
  try {
    for (const feed of feeds) await outputsOf(session, feed, names, 0);
    return true;
  } catch (error) {
    if (error instanceof QuantizationError) return false;
    throw error;
  }
}

/** Runs feeds that are made up, by the first guess that the model takes. Errors: format-unsupported if it takes none. */
async function runMade(
  runtime: { Tensor: TensorClass },
  model: OpenedModel,
  count: number,
  run: (feeds: readonly Feed[]) => Promise<Runs>,
): Promise<MadeRuns> {
  const inputs = inputsOf(model);
  let refusal = '';
  for (const guess of feedGuesses) {
    const feeds = generatedFeeds(runtime.Tensor, model, inputs, count, guess);
    if (!feeds)
      throw failure('format-unsupported', model.name, 'has an input for which no values can be generated; give feeds');
    try {
      return { ...(await run(feeds)), guess };
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      refusal = error.detail;
    }
  }
  throw failure(
    'format-unsupported',
    model.name,
    `does not run on made-up inputs; give feeds (${refusal.slice(0, 200)})`,
  );
}

/** Both models on the same feeds. Errors: those of `OutputErrors.of`; format-unsupported for models of another format. */
export async function compareOutputs(
  reference: OpenedModel,
  quantized: OpenedModel,
  options: CompareOptions,
): Promise<OutputComparison> {
  for (const model of [reference, quantized])
    if (!formats.inputs[model.format].hasGraph)
      throw failure('format-unsupported', model.name, 'has no graph to run; leave the option runtime out');
  const judge = await OutputErrors.of(reference, options);
  const byName = new Map<string, number[]>();
  const errors = await judge.measure(quantized, options.signal, (output) => {
    byName.set(output.name, [...(byName.get(output.name) ?? []), output.error]);
    options.onOutput?.(output);
  });
  const times =
    options.measureSpeed && (await turnTimesOf(judge.runtime, [reference, quantized], judge.timed, options));
  return {
    error: mean(errors),
    outputs: [...byName].map(([name, list]) => ({ name, error: mean(list) })),
    feeds: judge.feeds.length,
    areGenerated: judge.areMadeUp,
    ...(times && { speed: speedOf(times) }),
  };
}
