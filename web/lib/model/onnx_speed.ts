// Time of a run in ONNX Runtime: two models in turns, so that both meet the same machine.

import type { Speed, Spread } from '../api/curve_types.js';
import type { OpenedModel } from './model.js';
import { layerValuesOf } from './onnx_inputs.js';
import { createSession, type Feed, type Runtime, type RuntimeSession, ran } from './onnx_session.js';

/** How long a turn takes at least: clocks of browsers have steps of up to 1 ms. Many short turns are surer than few long ones. */
const turnMilliseconds = 15;
const mostRuns = 1000;
const warmMilliseconds = 300;
/** A clock may say 0 of a single run. */
const leastTime = 0.01;
/** Odd: the median is one of the turns. */
const mostTurns = 31;
const leastTurns = 7;
/** After this time, slow models have no more turns than the least. */
const enoughMilliseconds = 5000;

/** On a busy machine, the times of several threads are those of the one that waits longest. */
const oneThread = { intraOpNumThreads: 1, interOpNumThreads: 1 };

/** Milliseconds of a run, by turn. */
export interface TurnTimes {
  original: number[];
  quantized: number[];
}

interface HostWithProcess {
  process?: { cpuUsage?(): { user: number; system: number } };
}

/** Where a host tells it, the processor time of one thread, which other programs hardly change; that of several is no time of a run. */
function clockFor(sessionOptions: object | undefined): () => number {
  const { process } = globalThis as HostWithProcess;
  if (sessionOptions || !process?.cpuUsage) return () => performance.now();
  return () => {
    const { user = 0, system = 0 } = process.cpuUsage?.() ?? {};
    return (user + system) / 1000;
  };
}

/** Sessions, what runs in them, and by which clock. */
interface Timing {
  sessions: readonly [original: RuntimeSession, quantized: RuntimeSession];
  feeds: readonly Feed[];
  names: readonly string[];
  now: () => number;
  signal: AbortSignal | undefined;
}

/** Milliseconds of `runs` runs together. Errors: argument-invalid naming the feed. */
async function timed({ sessions, feeds, names, now }: Timing, which: 0 | 1, turn: number, runs: number) {
  const session = sessions[which];
  const number = turn % feeds.length;
  const feed = feeds[number] as Feed;
  if (session.timed) return session.timed(feed, names, runs);
  const begin = now();
  for (let run = 0; run < runs; ++run)
    for (const tensor of Object.values(await ran(session, feed, names, number))) tensor.dispose?.();
  return now() - begin;
}

async function timesInTurns(timing: Timing): Promise<TurnTimes> {
  const { signal } = timing;
  const runs: [number, number] = [1, 1];
  for (const i of [0, 1] as const) {
    signal?.throwIfAborted();
    // What a session prepares in its first runs, as browsers compile WebAssembly anew while it runs, is no part of a run.
    let [one, spent] = [await timed(timing, i, 0, 1), 0];
    do {
      one = await timed(timing, i, 0, 1);
      spent += Math.max(one, leastTime);
    } while (spent < warmMilliseconds);
    runs[i] = Math.min(mostRuns, Math.max(1, Math.ceil(turnMilliseconds / Math.max(one, leastTime))));
  }
  const times: [number[], number[]] = [[], []];
  let spent = 0;
  for (let turn = 0; turn < mostTurns && (turn < leastTurns || spent < enoughMilliseconds); ++turn)
    // Each model begins every other turn: a machine that becomes slower all the time slows both alike.
    for (const i of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      signal?.throwIfAborted();
      // Before, the other model used the caches, which matters for runs that are short.
      const first = runs[i] > 1 ? await timed(timing, i, turn, 1) : 0;
      const together = await timed(timing, i, turn, runs[i]);
      times[i].push(together / runs[i]);
      spent += first + together;
    }
  const [original, quantized] = times;
  return { original, quantized };
}

/** Errors: source-invalid (the runtime rejects a model), argument-invalid (a feed that does not fit). `feeds`: at least one. */
export async function turnTimesOf(
  runtime: Runtime,
  models: readonly [original: OpenedModel, quantized: OpenedModel],
  feeds: readonly Feed[],
  { sessionOptions, signal }: { sessionOptions?: object | undefined; signal?: AbortSignal | undefined },
): Promise<TurnTimes> {
  const [first, second] = models;
  const open = (model: OpenedModel) =>
    createSession(runtime, model, [], layerValuesOf(model).locations, { ...oneThread, ...sessionOptions });
  const original = await open(first);
  try {
    const quantized = await open(second);
    try {
      const names = layerValuesOf(first).outputs;
      return await timesInTurns({
        sessions: [original, quantized],
        feeds,
        names,
        now: clockFor(sessionOptions),
        signal,
      });
    } finally {
      await quantized.release();
    }
  } finally {
    await original.release();
  }
}

/** Quartiles, between neighbours where no value is there. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const [low, high] = [sorted[Math.floor(place)] as number, sorted[Math.ceil(place)] as number];
    return low + (place - Math.floor(place)) * (high - low);
  };
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}

/** Smaller differences are none. */
const leastDifference = 0.05;

export function speedOf({ original, quantized }: TurnTimes): Speed {
  const ratio = spreadOf(quantized.map((time, turn) => time / (original[turn] as number)));
  const verdict =
    ratio.low > 1 && ratio.median >= 1 + leastDifference
      ? 'slower'
      : ratio.high < 1 && ratio.median <= 1 - leastDifference
        ? 'faster'
        : 'alike';
  const [milliseconds, ofOriginal] = [spreadOf(quantized), spreadOf(original)];
  return { milliseconds, original: ofOriginal, ratio, verdict, turns: quantized.length };
}
