// One whole run: plan, work, write, report.

import { failure } from '../api/errors.js';
import type { Diagnostic, Plan, QuantizeModelOptions, Report, TensorError } from '../api/types.js';
import { sizesFor, type TileSizes } from '../engine/memory.js';
import { abortable } from '../io/abort.js';
import type { OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import { OutputFiles } from '../plan/output_files.js';
import type { PlanChoices, PreparedRun } from '../plan/plan.js';
import { dispatch } from '../pool/job_loop.js';
import { Schedule } from '../pool/job_queue.js';
import type { RunContext } from '../pool/pool.js';
import { ProgressMeter } from '../pool/progress.js';
import { errorRemarks, tensorReport } from '../pool/report.js';
import { reader, type Workshop } from '../pool/workshop.js';
import type { Resumed } from './resume.js';
import type { Reused } from './reuse.js';

const calibratedNote: Diagnostic = {
  severity: 'note',
  code: 'not-resumable',
  where: '',
  message:
    'calibrated configs go through the whole model, block after block: no file is kept when this run is interrupted',
};

/** What a target that takes a single file cannot hold. Errors: target-invalid. */
function checkSingle(plan: Plan, target: OutputTarget): Diagnostic[] {
  const ending = /\.(onnx|gguf|safetensors)$/i.exec(target.fileName ?? '')?.[1];
  if (ending && (ending.toLowerCase() === 'onnx') !== (plan.format === 'onnx'))
    throw failure('target-invalid', target.fileName ?? '', `${plan.format} is not written to files of this ending`);
  if (plan.files.length > 1 && !(plan.format === 'onnx' && target.takesData)) {
    const detail = `takes a single file, the output has ${plan.files.length}; give a folder`;
    throw failure('target-invalid', 'target', detail);
  }
  if (plan.quantizationConfig === null) return [];
  return [
    {
      severity: 'note',
      code: 'config-not-written',
      where: '',
      message: 'a single file was written, without the config.json that says how to decode it',
      hint: 'give a folder as the target, or put quantizationConfig of the plan into config.json',
    },
  ];
}

/** What `options.reuse` saves; null where every tensor depends on the others, or on calibration. */
async function reusedBy(
  workshop: Workshop,
  model: OpenedModel,
  run: PreparedRun,
  { reuse, calibration }: QuantizeModelOptions,
  config: string,
  former: string | undefined,
  choices: PlanChoices,
  tiles: TileSizes,
): Promise<Reused | null> {
  if (!reuse || former === undefined || calibration !== undefined) return null;
  const isCalibrated = (text: string) =>
    workshop.instance.call<unknown[]>((module) => module.calibratedAlgorithms(text)).length > 0;
  if (isCalibrated(config) || isCalibrated(former)) return null;
  const { reuseTensors } = await import('./reuse.js');
  return reuseTensors(workshop, model, run, reuse, former, choices, tiles);
}

/** The caller's options, and what of the library's version follows into a run that is resumed. */
export interface RunOptions extends QuantizeModelOptions {
  library: string;
}

/** Runs a plan into a target; `former`: text of the config of `options.reuse`. On failure the target is aborted and the first error thrown. */
export async function quantizeInto(
  workshop: Workshop,
  model: OpenedModel,
  config: string,
  target: OutputTarget,
  options: RunOptions,
  former?: string,
): Promise<Report> {
  const { pool, memory } = workshop;
  const started = performance.now();
  const { signal } = options;
  let context: RunContext | null = null;
  try {
    signal?.throwIfAborted();
    const inputBytes = model.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const { workers, tiles, shareBytes } = sizesFor(memory, inputBytes);
    pool.prepare(workers);
    // Loaded with the first run, not with the page.
    const { calibrateBlocks, planRun } = await import('../calibration/calibrate.js');
    const choices = { ...options, file: target.fileName, folder: target.takesFolders };
    const planned = await abortable(signal, planRun(workshop, model, config, choices, tiles));
    const { run, calibration } = planned;
    const { plan } = run;
    const part =
      options.shards && (await import('./shard_range.js')).partOf(workshop.instance, planned, options.shards);
    const notes = [...(target.isFolder ? [] : checkSingle(plan, target)), ...planned.notes];
    const hasSmall = target.isFolder && plan.format !== 'gguf' && (options.shards?.part ?? 1) === 1;
    const small = hasSmall ? await (await import('./sidecar_files.js')).smallFiles(model, run) : [];
    if (part) await target.check(part.names);
    else await target.check([...plan.files, ...small].map((file) => file.name));

    const reused = await reusedBy(workshop, model, run, options, config, former, choices, tiles);
    let resumed: Resumed | null = null;
    if (options.resume && calibration === null) {
      const { takeUp } = await import('./resume.js');
      const inputs = [...model.weights, ...(reused?.sources ?? [])];
      resumed = await takeUp(target, options.library, inputs, run, options.gguf?.imatrix);
    } else if (options.resume) {
      notes.push(calibratedNote);
    }
    const others = run.items.flatMap((item, number) =>
      calibration?.items.has(number) || resumed?.errors.has(number) || part?.items.has(number) === false
        ? []
        : (reused?.copies.get(number) ?? [item]).map((work) => ({ item: work, number })),
    );
    const calibrated = run.items.filter((_, number) => calibration?.items.has(number));
    const work = [...others.map(({ item }) => item), ...calibrated];
    const { onProgress } = options;
    const progress = new ProgressMeter(
      onProgress && ((done) => onProgress({ ...done, memoryBytes: workshop.instance.memoryBytes + pool.memoryBytes })),
      work.length,
      work.reduce((sum, item) => sum + item.bytes, 0),
    );
    let schedule: Schedule | null = null;
    const place = new Map(others.map(({ number }, at) => [number, at]));
    const errorOf = (task: number) => {
      if (resumed?.errors.has(task)) return resumed.errors.get(task) ?? null;
      return reused?.errors.get(task) ?? schedule?.error(place.get(task) ?? -1) ?? null;
    };
    const keeping = resumed && { files: resumed.files, keep: (file: number) => resumed.keep(file, errorOf) };
    const output = new OutputFiles(target, part?.own(run.files) ?? run.files, memory.waitingBytes, keeping);
    await abortable(signal, output.start());
    const weights = [...model.weights, ...(reused?.sources ?? [])];
    context = pool.context(
      { inputs: [weights.map((source) => source.remote)], outputs: output.paths },
      reader([{ weights }]),
    );
    const jobBytes = output.isWrittenByWorkers ? memory.jobBytes : memory.transferJobBytes;
    schedule = new Schedule(
      others.map(({ item }) => item),
      Math.min(jobBytes, shareBytes),
      workers,
    );
    await dispatch(
      pool,
      context,
      schedule,
      workers,
      output,
      ({ phase, bytes, tensors, tensor }) => progress.advance(phase, bytes, tensors, tensor),
      signal,
    );
    // Last, so that nothing but a block at a time waits for an append-only target.
    const calibratedErrors = calibration
      ? await calibrateBlocks(workshop, calibration, context, output, progress, signal)
      : new Map<number, TensorError | null>();
    await pool.release(context);
    context = null;
    await abortable(signal, output.finish());
    for (const source of weights) await source.checkUnchanged?.();

    const errors = new Map(
      run.tasks.map(({ tensor }, number) => [tensor, calibratedErrors.get(number) ?? errorOf(number)]),
    );
    const tensors = plan.tensors.map((tensor, number) => tensorReport(tensor, errors.get(number) ?? null));
    const whole: Report = {
      format: plan.format,
      tensors,
      files: [
        ...plan.files.map((file) => ({ ...file, name: (plan.format !== 'onnx' && target.fileName) || file.name })),
        ...small.map(({ name, bytes }) => ({ name, bytes })),
      ],
      totals: plan.totals,
      diagnostics: [...plan.diagnostics, ...notes, ...errorRemarks(tensors)],
      ...(options.reuse && { reused: reused?.copies.size ?? 0 }),
      ...(options.resume && { resumedFiles: resumed?.files.size ?? 0 }),
      durationMs: performance.now() - started,
      threads: memory.threads,
    };
    const report = part ? part.report(whole) : whole;
    for (const file of part ? await part.stage(small, report) : small) {
      await abortable(signal, file.writeTo(target));
    }
    signal?.throwIfAborted();
    progress.finish('write');
    await target.commit();
    return { ...report, durationMs: performance.now() - started };
  } catch (error) {
    if (context) await pool.release(context);
    await target.abort(error);
    throw error;
  }
}
