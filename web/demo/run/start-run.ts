// One run from click to files: choose a destination, quantize in the workers, hand over the result.
import type { Calibration, Model, Plan, Progress, Quantizer, RunReport } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { hasModules } from '../../present/runtimes/load_lines';
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
import { largeModel } from '../configure/planner';
import { shortName } from '../configure/scheme-names';
import { needsActivations } from '../configure/static-inputs';
import { activationsOf } from '../feeds/activations';
import { feeds, type GivenFeeds, runningSample } from '../feeds/feeds';
import { filesOf, modelOf } from '../inspect/kept-model';
import type { LargeModel } from '../large/large-model';
import type { RunningSample } from '../large/messages';
import { type OpenedModel, opened } from '../open/opened';
import { textFor } from '../quality/texts';
import { plainTokensOf, tokensOf } from '../quality/tokenize';
import { destination, isSingleFile } from './destination';
import type { Output, Place } from './output';
import { pickFile } from './pick-file';
import { pickFolder } from './pick-folder';
import { Rate } from './rate';
import { createRunFolder } from './run-folder';
import { type FinishedRun, keptRun, run, runs } from './runs';

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

function showSample(sample: RunningSample | null): void {
  runningSample.value = sample;
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
function reusable(model: Model, { format }: Choice): FinishedRun | null {
  const former = keptRun.value;
  // A folder on disk is the user's, who may have changed its files.
  const isKept = former?.model === model && former.choice.format === format && former.files?.folder === null;
  return isKept ? former : null;
}

interface Task {
  model: Model;
  number: number;
  choice: Choice;
  /** The values that the user gave for an ONNX model. */
  given: GivenFeeds | null;
  /** The text to calibrate with. */
  text: string | null;
  reuse: FinishedRun | null;
  target: Place;
}

async function taskOf(model: Model, config: Record<string, unknown>, target: Place): Promise<Task> {
  const used = choice.value;
  const fed = feeds();
  const given = fed && (needsActivations(config) || dialectOf(config) !== 'quark') ? fed : null;
  const isTextNeeded = !formats.inputs[model.format].hasGraph && needsText(config);
  const text = !given && isTextNeeded ? await textFor('calibrate') : null;
  const reuse = given || text !== null ? null : reusable(model, used);
  const number = (runs.value.at(-1)?.number ?? 0) + 1;
  return { model, number, choice: used, given, text, reuse, target };
}

const configOf = ({ configText, preset }: Choice) => configText ?? preset;

/** In the worker that has the model. */
async function runLarge(large: LargeModel, task: Task, signal: AbortSignal): Promise<RunReport> {
  const { model, number, choice, given: fed, text, reuse, target } = task;
  const tokens = text === null ? null : await plainTokensOf(model, text, signal);
  const former = reuse?.files && {
    number: reuse.number,
    config: configOf(reuse.choice),
    output: await filesOf(reuse.files),
  };
  const work = { number, config: configOf(choice), format: choice.format, target };
  const given = { ...(tokens && { tokens }), ...(fed && { feeds: fed.groups }), ...(former && { reuse: former }) };
  const showProgress = progressToScreen();
  return large.ask(
    'run',
    { ...work, ...given },
    { signal, onTold: (told) => ('sample' in told ? showSample(told.sample) : showProgress(told.progress)) },
  );
}

async function runHere(engine: Quantizer, task: Task, signal: AbortSignal): Promise<RunReport> {
  const { model, choice, given, text, reuse, target } = task;
  let calibration: Calibration | null = null;
  if (given) calibration = await activationsOf(given, showSample, signal);
  else if (text !== null) calibration = { tokens: await tokensOf(model, text, signal) };
  const former = reuse && { config: configOf(reuse.choice), output: await modelOf(reuse), report: reuse.report };
  return engine.quantizeModel(model, configOf(choice), {
    target,
    format: choice.format,
    signal,
    onProgress: progressToScreen(),
    ...(calibration && { calibration }),
    ...(former && { reuse: former }),
  });
}

/** `int4 g128`, `int4 g128, calibrated`, `custom (from int4_wo_128)`. */
function titleOf({ preset, configText }: Choice, config: Record<string, unknown>): string {
  const name = shortName(preset);
  if (configText === null) return name;
  const plain = algorithms.reduce((without, algorithm) => withAlgorithm(without, algorithm, false), config);
  const isPreset = JSON.stringify(plain) === JSON.stringify(chosenPreset.value?.config);
  return isPreset ? `${name}, calibrated` : `custom (from ${preset})`;
}

async function runInto(output: Output, { model, title }: OpenedModel, plan: Plan, signal: AbortSignal): Promise<void> {
  const config = chosenConfig.value;
  if (!quantizer.value || !config) return;
  const task = await taskOf(model, config, output.handle);
  const { number, choice: used } = task;
  const configTitle = titleOf(used, config);
  const large = largeModel(model);
  const report = await (large ? runLarge(large, task, signal) : runHere(quantizer.value, task, signal));
  const list = await output.files(report);
  await forgetFiles();
  kept = output;
  const files = { list, handle: output.handle, folder: output.folder };
  const source = { model, modelTitle: title, hasModules: await hasModules(model) };
  const done = { ...source, number, plan, report, choice: used, config, configTitle, files };
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
