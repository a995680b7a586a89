// One whole run: plan, work, write, report.

import { abortable } from './abort.js';
import { dispatch } from './dispatch.js';
import { failure } from './errors.js';
import type { Instance } from './instance.js';
import { type MemoryPlan, sizesFor } from './memory.js';
import type { OpenedModel } from './model.js';
import { OutputFiles } from './output_files.js';
import type { Pool, RunContext } from './pool.js';
import { ProgressMeter } from './progress.js';
import { tensorReport } from './report.js';
import { Schedule } from './schedule.js';
import type { OutputTarget } from './target.js';
import type { Diagnostic, Model, Plan, QuantizeModelOptions, Report, Source, TensorError } from './types.js';

/** What a run works with. */
export interface Workshop {
  instance: Instance;
  pool: Pool;
  memory: MemoryPlan;
  open(source: Source): Promise<Model>;
}

/** How the main thread reads for workers that cannot. */
export function reader(models: OpenedModel[]): RunContext['read'] {
  return async (input, file, offset, length) => {
    const source = models[input]?.weights[file];
    if (!source) throw new RangeError(`file ${file} of model ${input} does not exist`);
    return source.read(offset, length);
  };
}

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

/** Runs a plan into a target. On failure the target is aborted and the first error thrown. */
export async function quantizeInto(
  workshop: Workshop,
  model: OpenedModel,
  config: string,
  target: OutputTarget,
  options: QuantizeModelOptions,
): Promise<Report> {
  const { pool, memory } = workshop;
  const started = performance.now();
  const { signal } = options;
  let context: RunContext | null = null;
  try {
    signal?.throwIfAborted();
    const inputBytes = model.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const { workers, tiles, shareBytes } = sizesFor(memory, inputBytes);
    // Loaded with the first run, not with the page.
    const { calibrateBlocks, planRun } = await import('./calibrate.js');
    const planned = await abortable(
      signal,
      planRun(workshop, model, config, { ...options, file: target.fileName, folder: target.takesFolders }, tiles),
    );
    const { run, calibration } = planned;
    const { plan } = run;
    const notes = [...(target.isFolder ? [] : checkSingle(plan, target)), ...planned.notes];
    const small =
      target.isFolder && plan.format !== 'gguf' ? await (await import('./small_files.js')).smallFiles(model, run) : [];
    await target.check([...plan.files, ...small].map((file) => file.name));

    const progress = new ProgressMeter(
      options.onProgress,
      run.items.length,
      run.items.reduce((sum, item) => sum + item.bytes, 0),
    );
    const output = new OutputFiles(target, run.files, memory.waitingBytes);
    await abortable(signal, output.start());
    context = pool.context(
      { inputs: [model.weights.map((source) => source.remote)], outputs: output.paths },
      reader([model]),
    );
    const isWrittenByWorkers = output.paths.every((path) => path !== null);
    const jobBytes = isWrittenByWorkers ? memory.jobBytes : memory.transferJobBytes;
    const others = run.items.flatMap((item, number) => (calibration?.items.has(number) ? [] : [{ item, number }]));
    const schedule = new Schedule(
      others.map(({ item }) => item),
      Math.min(jobBytes, shareBytes),
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
    const calibrated = calibration
      ? await calibrateBlocks(workshop, calibration, context, output, progress, signal)
      : new Map<number, TensorError | null>();
    await pool.release(context);
    context = null;
    await abortable(signal, output.finish());
    for (const file of small) {
      await abortable(signal, file.writeTo(target));
    }
    for (const source of model.weights) await source.checkUnchanged?.();
    signal?.throwIfAborted();
    progress.finish('write');
    await target.commit();

    const errorOf = new Map(others.map(({ number }, item) => [number, schedule.error(item)]));
    const errors = new Map(
      run.tasks.map(({ tensor }, number) => [tensor, calibrated.get(number) ?? errorOf.get(number) ?? null]),
    );
    return {
      format: plan.format,
      tensors: plan.tensors.map((tensor, number) => tensorReport(tensor, errors.get(number) ?? null)),
      files: [
        ...plan.files.map((file) => ({ ...file, name: (plan.format !== 'onnx' && target.fileName) || file.name })),
        ...small.map(({ name, bytes }) => ({ name, bytes })),
      ],
      totals: plan.totals,
      diagnostics: [...plan.diagnostics, ...notes],
      durationMs: performance.now() - started,
      threads: memory.threads,
    };
  } catch (error) {
    if (context) await pool.release(context);
    await target.abort(error);
    throw error;
  }
}
