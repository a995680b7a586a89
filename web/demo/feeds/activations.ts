// Activations of an ONNX model on samples, in the page or in a worker.
import type { CapturedActivations, Model } from 'wasmquant';
import type { Feed, FileFeeds } from 'wasmquant/onnxruntime';
import type { RunningSample } from '../large/messages';
import { workerRuntime } from './worker-runtime';

/** The library's tools for ONNX Runtime, which most visits do not need. */
export const toolsOf = () => import('wasmquant/onnxruntime');

/** Values of layers fetched at once: each is copied from the worker, and all values of an image network would exhaust a tab's memory. */
const valuesPerRun = 16;

/** The same samples; tells the current one. */
async function* told(samples: FileFeeds, pass: number, tell: (sample: RunningSample | null) => void) {
  let index = 0;
  try {
    for await (const sample of samples) {
      tell({ index: ++index, count: samples.count, pass });
      yield sample as Feed;
    }
  } finally {
    tell(null);
  }
}

/** For a run. `files`: opened feeds that fit the model. */
export async function activationsOf(
  { model, files }: { model: Model; files: readonly Model[] },
  tell: (sample: RunningSample | null) => void,
  signal: AbortSignal,
): Promise<CapturedActivations> {
  const { captureActivations, feedsOf } = await toolsOf();
  const runtime = workerRuntime(signal);
  const samples = feedsOf(runtime, model, ...files);
  let passes = 0;
  return captureActivations(runtime, model, () => told(samples, ++passes, tell), { valuesPerRun, signal });
}
