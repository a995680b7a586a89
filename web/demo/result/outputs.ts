// Outputs of an ONNX model and of what a run made of it, on feeds: those that were given, or made up by type and shape.
import { signal } from '@preact/signals';
import { quantizer } from '../app/engine';
import { feeds, toolsOf } from '../feeds/feeds';
import { workerRuntime } from '../feeds/worker-runtime';
import { runJob } from '../quality/job';
import type { FinishedRun } from '../run/runs';

export const outputErrors = signal<{ run: number; error: number; inputs: number; areGiven: boolean }[]>([]);

/** Whether the outputs of a run can be compared: those of presets, which the curve measures. */
export const canCompareOutputs = ({ choice, plan }: FinishedRun) =>
  plan.format === 'onnx' && choice.configText === null;

export function compareOutputs(done: FinishedRun): Promise<void> {
  return runJob('Comparing outputs', async (signal, onProgress) => {
    const runtime = workerRuntime(signal);
    const given = feeds();
    const samples = given && (await toolsOf()).feedsOf(runtime, done.model, ...given.files);
    const { metric, points } = await quantizer.value!.curve(done.model, {
      schemes: [done.choice.preset],
      target: 'onnxruntime',
      runtime,
      signal,
      onProgress,
      ...(samples && { feeds: samples }),
    });
    const [point] = points;
    if (metric.kind !== 'output-error' || point?.loss == null)
      throw new Error(metric.reason ?? point?.reason ?? 'The outputs could not be compared.');
    const found = { run: done.number, error: point.loss, inputs: metric.windows ?? 0, areGiven: given !== null };
    outputErrors.value = [...outputErrors.value, found];
  });
}
