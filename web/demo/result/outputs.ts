// Outputs and speed of an ONNX model and of what a run made of it, on feeds: those that were given, or made up by type and shape.
import { signal } from '@preact/signals';
import type { OutputComparison, Speed } from 'wasmquant';
import { quantizer } from '../app/engine';
import { toolsOf } from '../feeds/activations';
import { feeds } from '../feeds/feeds';
import { workerRuntime } from '../feeds/worker-runtime';
import { modelOf } from '../inspect/kept-model';
import { runJob } from '../quality/job';
import type { FinishedRun } from '../run/runs';

export const outputErrors = signal<{ run: number; error: number; inputs: number; areGiven: boolean }[]>([]);
export const speeds = signal<{ run: number; speed: Speed }[]>([]);

/** What was found of a run, in the place of what was known. */
export function keepOutputs(run: number, { error, feeds: inputs, speed }: OutputComparison, areGiven: boolean): void {
  const isOther = (each: { run: number }) => each.run !== run;
  outputErrors.value = [...outputErrors.value.filter(isOther), { run, error, inputs, areGiven }];
  speeds.value = [...speeds.value.filter(isOther), ...(speed ? [{ run, speed }] : [])];
}

/** Whether the outputs of a run can be compared: while its files are kept. */
export const canCompareOutputs = ({ plan, files }: FinishedRun) => plan.format === 'onnx' && files !== null;

export function compareOutputs(done: FinishedRun): Promise<void> {
  return runJob('Comparing outputs', async (signal, onProgress) => {
    const runtime = workerRuntime(signal);
    const given = feeds();
    const samples = given && (await toolsOf()).feedsOf(runtime, done.model, ...given.files);
    const { outputs } = await quantizer.value!.compare(done.model, await modelOf(done), {
      ...{ runtime, signal, onProgress, measureSpeed: true },
      ...(samples && { feeds: samples }),
    });
    if (!outputs) throw new Error('The outputs could not be compared.');
    keepOutputs(done.number, outputs, given !== null);
  });
}
