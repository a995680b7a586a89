// ONNX Runtime Web in a worker, because it would block the main thread while a model runs. One session.
import { env, InferenceSession, Tensor } from 'onnxruntime-web/wasm';

/** A tensor as passed between threads. */
export interface PlainTensor {
  type: string;
  data: unknown;
  dims: readonly number[];
}

export type RuntimeWork =
  | { create: Uint8Array; options: InferenceSession.SessionOptions }
  | { feed: Record<string, PlainTensor>; fetches: readonly string[] }
  | { feed: Record<string, PlainTensor>; fetches: readonly string[]; runs: number };
/** Replies are in the order of requests; `outputs` is empty for a new session. `milliseconds` are of all `runs` together. */
export type RuntimeReply = { outputs: Record<string, PlainTensor> } | { milliseconds: number } | { problem: string };

// More threads need SharedArrayBuffer, which requires headers that a static host does not send.
env.wasm.numThreads = 1;
env.logLevel = 'error';

let session: InferenceSession | null = null;

async function answer(work: RuntimeWork): Promise<RuntimeReply> {
  try {
    if ('create' in work) {
      session = await InferenceSession.create(work.create, { ...work.options, executionProviders: ['wasm'] });
      return { outputs: {} };
    }
    if (!session) return { problem: 'no session was created' };
    // Plain tensors have valid contents for the class; only its overloads do not accept the union.
    const feed = Object.fromEntries(
      Object.entries(work.feed).map(
        ([name, { type, data, dims }]) => [name, new Tensor(type as 'float32', data as Float32Array, dims)] as const,
      ),
    );
    if ('runs' in work) {
      const begin = performance.now();
      for (let run = 0; run < work.runs; ++run) await session.run(feed, work.fetches);
      return { milliseconds: performance.now() - begin };
    }
    const found = await session.run(feed, work.fetches);
    const outputs: Record<string, PlainTensor> = {};
    for (const [name, { type, data, dims }] of Object.entries(found)) outputs[name] = { type, data, dims };
    return { outputs };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

let last = Promise.resolve();
self.onmessage = ({ data }: MessageEvent<RuntimeWork>) => {
  last = last.then(async () => self.postMessage(await answer(data)));
};
