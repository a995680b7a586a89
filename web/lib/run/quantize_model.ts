// A whole run in five steps: prepare, resume, write, calibrate, report.

import { writesGraph } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import type { QuantizeModelOptions, RunReport, TensorError } from '../api/types.js';
import type { CalibrationPlan } from '../calibration/calibrate.js';
import { abortable } from '../io/abort.js';
import type { FileSource } from '../io/file_source.js';
import type { OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import { OutputFiles } from '../plan/output_files.js';
import { dispatch } from '../pool/job_loop.js';
import { Schedule, type WorkItem } from '../pool/job_queue.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { errorRemarks, type Outcome, tensorReport } from '../pool/report.js';
import { type RunResources, withRunInputs } from '../pool/run_resources.js';
import { idleError, type PreparedRun, prepare, type QuantizeRequest } from './prepare_run.js';
import type { Resumed } from './resume.js';
import type { Reused } from './reuse.js';

/** What to take over from a former or interrupted run. */
interface ReusedWork {
  resumed: Resumed | null;
  reused: Reused | null;
  /** The model's files, then those of a former output. */
  weights: readonly FileSource[];
  /** Tasks of tensors that are neither done nor calibrated, and the number of each in the plan. */
  others: { items: WorkItem[]; numbers: number[] };
}

/** The models that reports of this process are of; their outputs need no proof. */
const models = new WeakMap<RunReport, OpenedModel>();

/** What `options.reuse` saves; null if every tensor depends on the others, or on calibration. */
async function reusedBy(prepared: PreparedRun, former: string | undefined): Promise<Reused | null> {
  const { resources, model, run, choices, sizes } = prepared;
  const { reuse, calibration } = prepared.options;
  if (!reuse || former === undefined || calibration !== undefined || prepared.isCalibrated) return null;
  const { instance } = resources;
  return instance.withObject(
    (module) => new module.Config(former),
    async (config) => {
      if (instance.call<unknown[]>(() => config.calibratedAlgorithms()).length > 0) return null;
      const { reuseTensors } = await loaded(import('./reuse.js'));
      const isSource = models.get(reuse.report) === model;
      return reuseTensors(resources, model, run, reuse, { config, isSource }, choices, sizes.tiles);
    },
  );
}

/** Takes over finished work and lists the rest. Errors: those of reuseTensors and resumeOutput. */
async function resume(prepared: PreparedRun, former: string | undefined): Promise<ReusedWork> {
  const { model, run, calibration, part, target, options } = prepared;
  const reused = await reusedBy(prepared, former);
  const weights = [...model.weights, ...(reused?.sources ?? [])];
  let resumed: Resumed | null = null;
  if (options.resume && calibration === null) {
    const { resumeOutput } = await loaded(import('./resume.js'));
    resumed = await resumeOutput(target, weights, run, prepared.identity);
  }
  const others: ReusedWork['others'] = { items: [], numbers: [] };
  for (const [number, item] of run.items.entries()) {
    if (calibration?.items.has(number) || resumed?.errors.has(number) || part?.items.has(number) === false) continue;
    for (const work of reused?.copies.get(number) ?? [item]) {
      others.items.push(work);
      others.numbers.push(number);
    }
  }
  return { resumed, reused, weights, others };
}

type ErrorOf = (task: number) => TensorError | null;
type OutcomeOf = (task: number) => Outcome;

/** Writes the weight files. Errors: those of reading, quantizing and writing. */
async function write(prepared: PreparedRun, done: ReusedWork, progress: ProgressMeter): Promise<OutcomeOf> {
  const { resources, run, calibration, part, target, sizes } = prepared;
  const { pool, memory } = resources;
  const { signal } = prepared.options;
  const { resumed, reused, others, weights } = done;
  let schedule: Schedule | null = null;
  const place = new Int32Array(run.items.length).fill(-1); // in `others`, by task
  for (const [at, number] of others.numbers.entries()) place[number] = at;
  const errorOf: ErrorOf = (task) => {
    if (resumed?.errors.has(task)) return resumed.errors.get(task) ?? null;
    return reused?.errors.get(task) ?? schedule?.error(place[task] ?? -1) ?? null;
  };
  const keeping = resumed && { files: resumed.files, keep: (file: number) => resumed.keep(file, errorOf) };
  const output = new OutputFiles(target, part?.own(run.files) ?? run.files, memory.waitingBytes, keeping);
  await abortable(signal, output.start());
  // A part of a run records those of its files at its end.
  if (!part) await abortable(signal, output.forgetLiterals());
  const jobBytes = output.isWrittenByWorkers ? memory.jobBytes : memory.transferJobBytes;
  const queue = new Schedule(others.items, Math.min(jobBytes, sizes.shareBytes), sizes.workers);
  schedule = queue;
  const second = reused?.work ?? calibration?.reads; // never both
  const work = second ? [...run.work, second] : run.work;
  const runInputs = { models: [{ weights }], work, sendsByJob: !second, outputs: output.paths };
  const calibrated = await withRunInputs(pool, runInputs, async (context) => {
    await dispatch(pool, context, queue, sizes.workers, output, (done) => progress.advance(done), signal);
    // Last, so that only a block at a time waits for an append-only target.
    return calibrate(prepared, calibration, context, output, progress);
  });
  await abortable(signal, output.finish());
  for (const source of weights) await source.checkUnchanged?.();
  return (task) => calibrated.get(task) ?? { error: errorOf(task) };
}

/** Writes the tensors of calibrated blocks. Returns their outcomes, by task. */
async function calibrate(
  { resources, options }: QuantizeRequest,
  calibration: CalibrationPlan | null,
  context: RunContext,
  output: OutputFiles,
  progress: ProgressMeter,
): Promise<Map<number, Outcome>> {
  if (!calibration) return new Map();
  const { calibrateBlocks } = await loaded(import('../calibration/calibrate.js'));
  return calibrateBlocks(resources, calibration, context, output, progress, options.signal);
}

/** Writes the small files and makes the report. Errors: those of writing. */
async function report(
  { resources, run, calibration, part, small, target, options, notes, identity }: PreparedRun,
  { reused, resumed }: ReusedWork,
  outcomeOf: OutcomeOf,
  started: number,
): Promise<RunReport> {
  const { plan } = run;
  const outcomes: Outcome[] = [];
  for (const [number, { tensor }] of run.items.entries()) if (tensor >= 0) outcomes[tensor] = outcomeOf(number);
  const tensors = plan.tensors.map((tensor, number) => tensorReport(tensor, outcomes[number] ?? { error: null }));
  const remarks = calibration ? (await import('../calibration/evidence.js')).calibrationRemarks(tensors) : [];
  const whole: RunReport = {
    format: plan.format,
    tensors,
    files: [
      ...plan.files.map((file) => ({ ...file, name: (plan.files.length === 1 && target.fileName) || file.name })),
      ...small.map(({ name, bytes }) => ({ name, bytes })),
    ],
    totals: plan.totals,
    diagnostics: [...plan.diagnostics, ...notes, ...errorRemarks(tensors), ...remarks],
    identity,
    ...(options.reuse && { reused: reused?.copies.size ?? 0 }),
    ...(options.resume && { resumedFiles: resumed?.files.size ?? 0 }),
    durationMs: performance.now() - started,
    threads: resources.pool.hasStandIn ? 0 : resources.memory.threads,
  };
  const own = part ? part.report(whole) : whole;
  for (const file of part ? await part.stage(small, own) : small) await abortable(options.signal, file.writeTo(target));
  options.signal?.throwIfAborted();
  return own;
}

function progressOf(parts: readonly { prepared: PreparedRun; done: ReusedWork }[]): ProgressMeter {
  const work = parts.flatMap(({ prepared: { run, calibration }, done: { others } }) => [
    ...others.items,
    ...run.items.filter((_, number) => calibration?.items.has(number)),
  ]);
  const { options, resources } = parts[0]?.prepared ?? {};
  const onProgress = options?.onProgress;
  const memory = () => (resources ? resources.instance.memoryBytes + resources.pool.memoryBytes : 0);
  return new ProgressMeter(
    onProgress && ((done) => onProgress({ ...done, memoryBytes: memory() })),
    work.length,
    work.reduce((sum, item) => sum + item.bytes, 0),
  );
}

/** Plans the model, or all graphs of an ONNX model in parts. Errors: those of `prepare`. */
async function prepareParts(request: QuantizeRequest): Promise<PreparedRun[]> {
  const { model, target, options } = request;
  if (!target.isFolder || !writesGraph(model.format, options.format)) return [await prepare(request)];
  const { presentFiles, withPart } = await loaded(import('./onnx_folder.js'));
  let present = await presentFiles(target, model.configText);
  const models = [model, ...model.parts];
  const prepared: PreparedRun[] = [];
  for (const [number, each] of models.entries()) {
    // Calibration and finished work are of the first graph.
    const { calibration: _, resume: __, reuse: ___, ...others } = options;
    const own = number === 0 ? options : others;
    const graph = { present, isLast: number === models.length - 1 };
    const run = await prepare({ ...request, model: each, options: own, graph });
    prepared.push(run);
    present = withPart(
      present,
      run.run.plan.files.map(({ name }) => name),
      run.run.outputConfig,
    );
  }
  const idle = prepared.map(({ run }) => idleError(run.plan));
  if (idle.every((error) => error !== null)) throw idle[0];
  return prepared;
}

/** Runs a plan into a target; `former`: config text of `options.reuse`. On failure aborts the target and throws. */
export async function quantizeInto(
  resources: RunResources,
  model: OpenedModel,
  config: string,
  target: OutputTarget,
  options: QuantizeModelOptions,
  former?: string,
): Promise<RunReport> {
  const started = performance.now();
  try {
    const parts: { prepared: PreparedRun; done: ReusedWork }[] = [];
    for (const prepared of await prepareParts({ resources, model, config, target, options }))
      parts.push({ prepared, done: await resume(prepared, former) });
    const progress = progressOf(parts);
    const reports: RunReport[] = [];
    for (const { prepared, done } of parts) {
      const errorOf = await write(prepared, done, progress);
      reports.push(await report(prepared, done, errorOf, started));
    }
    progress.finish('write');
    await target.commit();
    const [only] = reports;
    const { wholeReport } = await loaded(import('./whole_report.js'));
    const whole = only && reports.length === 1 ? only : wholeReport([model, ...model.parts], reports);
    const finished = { ...whole, durationMs: performance.now() - started };
    models.set(finished, model);
    return finished;
  } catch (error) {
    await target.abort(error);
    throw error;
  }
}
