// One run from click to files: choose a destination, quantize in the workers, hand over the result.
import { type Calibration, type FormerRun, formats, type Model, type Plan, type Progress } from 'wasmquant';
import { quantizer } from '../app/engine';
import { explain } from '../app/failure';
import { algorithms, withAlgorithm } from '../configure/algorithms';
import {
  type Choice,
  choice,
  chosenConfig,
  chosenPreset,
  dialectOf,
  needsText,
  whenPlanned,
} from '../configure/choice';
import { shortName } from '../configure/scheme-names';
import { needsActivations } from '../configure/static-inputs';
import { activationsOf, feeds } from '../feeds/feeds';
import { modelOf } from '../inspect/kept-model';
import { type OpenedModel, opened } from '../open/opened';
import { textFor } from '../quality/texts';
import { tokensOf } from '../quality/tokenize';
import { destination, isSingleFile } from './destination';
import type { Output } from './output';
import { pickFile } from './pick-file';
import { pickFolder } from './pick-folder';
import { Rate } from './rate';
import { createRunFolder } from './run-folder';
import { keptRun, run, runs } from './runs';

let controller: AbortController | null = null;
/** The output of the kept run. */
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

/** Removes the files of the previous run; its report stays. */
async function forgetFiles(): Promise<void> {
  const former = kept;
  kept = null;
  runs.value = runs.value.map((done) => (done.files ? { ...done, files: null } : done));
  await former?.remove();
}

/** Files of the previous run stay until the new ones exist, unless both do not fit. */
async function createFolder(bytes: number): Promise<Output> {
  try {
    return await createRunFolder(bytes);
  } catch (error) {
    const isFull = error instanceof DOMException && error.name === 'QuotaExceededError';
    if (!isFull || !kept) throw error;
    await forgetFiles();
    return await createRunFolder(bytes);
  }
}

/** The previous run if its output can be reused: unchanged tensors are copied from it. */
async function reusable(model: Model, { format }: Choice): Promise<FormerRun | null> {
  const former = keptRun.value;
  // A folder on disk is the user's, who may have changed its files.
  if (former?.model !== model || former.choice.format !== format || former.files?.folder !== null) return null;
  if (former.choice.weighted) return null;
  const { configText, preset } = former.choice;
  return { config: configText ?? preset, output: await modelOf(former), report: former.report };
}

async function calibrationOf(
  model: Model,
  { config, weighted }: { config: Record<string, unknown>; weighted: boolean },
  signal: AbortSignal,
): Promise<Calibration | null> {
  const given = feeds();
  if (given && (needsActivations(config) || dialectOf(config) !== 'quark')) return activationsOf(given, signal);
  return !formats.inputs[model.format].hasGraph && (weighted || needsText(config))
    ? { tokens: await tokensOf(model, await textFor('calibrate'), signal) }
    : null;
}

/** `int4 g128`, `int4 g128, calibrated`, `custom (from int4_wo_128)`. */
function titleOf({ preset, configText, weighted }: Choice, config: Record<string, unknown>): string {
  const name = shortName(preset);
  if (weighted) return `${name}, calibrated`;
  if (configText === null) return name;
  const plain = algorithms.reduce((without, algorithm) => withAlgorithm(without, algorithm, false), config);
  const isPreset = JSON.stringify(plain) === JSON.stringify(chosenPreset.value?.config);
  return isPreset ? `${name}, calibrated` : `custom (from ${preset})`;
}

async function runInto(output: Output, { model, title }: OpenedModel, plan: Plan, signal: AbortSignal): Promise<void> {
  const used = choice.value;
  const config = chosenConfig.value;
  if (!quantizer.value || !config) return;
  const configTitle = titleOf(used, config);
  const calibration = await calibrationOf(model, { config, weighted: used.weighted }, signal);
  const reuse = calibration ? null : await reusable(model, used);
  const report = await quantizer.value.quantizeModel(model, used.configText ?? used.preset, {
    target: output.handle,
    format: used.format,
    signal,
    onProgress: progressToScreen(),
    ...(calibration && { calibration }),
    ...(reuse && { reuse }),
  });
  const list = await output.files(report);
  await forgetFiles();
  kept = output;
  const number = (runs.value.at(-1)?.number ?? 0) + 1;
  const files = { list, handle: output.handle, folder: output.folder };
  const done = { number, plan, report, model, choice: used, config, modelTitle: title, configTitle, files };
  runs.value = [...runs.value, done];
}

/** Must be called from a click: a folder on disk is picked first. */
export async function startRun(): Promise<void> {
  const { plan } = await whenPlanned();
  const source = opened.value;
  if (!plan || !source || run.value.state === 'running') return;
  let output: Output | null = null;
  controller = new AbortController();
  const { signal } = controller;
  try {
    if (destination.value === 'folder') {
      output = isSingleFile.value ? await pickFile(plan.files[0]?.name ?? 'model') : await pickFolder();
      if (!output) return;
    }
    run.value = { state: 'running', progress: null, bytesPerSecond: null, cancelling: false };
    output ??= await createFolder(plan.totals.bytesAfter);
    await runInto(output, source, plan, signal);
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
