// One run from click to files: choose where, quantize in the workers, hand over the result.
import type { Progress } from 'wasmquant';
import { explain } from '../app/failure';
import { choice, chosenPreset, destination, opened, planned, quantizer, result, run } from '../app/state';
import type { Output } from './output';
import { pickFolder } from './pick-folder';
import { Rate } from './rate';
import { createRunFolder } from './run-folder';

let controller: AbortController | null = null;
/** Browser storage of the result on screen. */
let kept: Output | null = null;

export function cancelRun(): void {
  if (run.value.state === 'running') run.value = { ...run.value, cancelling: true };
  controller?.abort();
}

function progressToScreen(): (progress: Progress) => void {
  const rate = new Rate();
  return (progress) => {
    const bytesPerSecond = rate.add(progress.bytesDone);
    if (run.value.state === 'running') run.value = { ...run.value, progress, bytesPerSecond };
  };
}

async function forgetResult(): Promise<void> {
  const former = kept;
  kept = null;
  result.value = null;
  await former?.remove();
}

async function runInto(output: Output, signal: AbortSignal): Promise<void> {
  const source = opened.value;
  if (!quantizer.value || !source) return;
  const used = choice.value;
  const configTitle = used.configText === null ? (chosenPreset.value?.title ?? used.preset) : 'own config';
  const report = await quantizer.value.quantizeModel(source.model, used.configText ?? used.preset, {
    target: output.handle,
    format: used.format,
    signal,
    onProgress: progressToScreen(),
  });
  const files = await output.files(report);
  kept = output;
  const { model, title: modelTitle } = source;
  result.value = { report, files, model, choice: used, modelTitle, configTitle, folder: output.folder };
}

/** Must be called by a click: a folder on disk is asked for before anything else. */
export async function startRun(): Promise<void> {
  const { plan } = planned.value;
  if (!plan || run.value.state === 'running') return;
  let output: Output | null = null;
  controller = new AbortController();
  const { signal } = controller;
  try {
    if (destination.value === 'folder') {
      output = await pickFolder();
      if (!output) return;
    }
    run.value = { state: 'running', progress: null, bytesPerSecond: null, cancelling: false };
    await forgetResult();
    output ??= await createRunFolder(plan.totals.bytesAfter);
    await runInto(output, signal);
    run.value = { state: 'idle' };
  } catch (error) {
    await output?.remove();
    run.value = signal.aborted
      ? { state: 'cancelled' }
      : { state: 'failed', failure: explain(error, 'The run failed') };
  } finally {
    controller = null;
  }
}
