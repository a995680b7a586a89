// What a config would do to some tensors: they are quantized as in a run, and nothing is written.

import { dispatch, type ResultSink } from './dispatch.js';
import { failure } from './errors.js';
import { sizesFor } from './memory.js';
import type { OpenedModel } from './model.js';
import { prepareRun } from './plan.js';
import { tensorReport } from './report.js';
import { reader, type Workshop } from './run.js';
import { Schedule } from './schedule.js';
import type { PlanOptions, TensorReport } from './types.js';

const noOutput: ResultSink = {
  accept() {},
  hasRoom: () => true,
  changed: () => new Promise(() => {}),
};

/** Errors: those of plans, tensor-missing, those of reading and quantizing. Calibrated algorithms are left out. */
export async function tryTensors(
  { instance, pool, memory }: Workshop,
  model: OpenedModel,
  config: string,
  tensors: readonly string[],
  options: PlanOptions & { signal?: AbortSignal },
): Promise<TensorReport[]> {
  options.signal?.throwIfAborted();
  const { plan, items, tasks } = await prepareRun(instance, model, config, options, memory.tiles);
  const numbers = tensors.map((name) => plan.tensors.findIndex((tensor) => tensor.name === name));
  const missing = numbers.indexOf(-1);
  if (missing >= 0) throw failure('tensor-missing', tensors[missing] ?? '', 'is not in the model');
  const positions = tasks.flatMap(({ tensor }, item) => (numbers.includes(tensor) ? [item] : []));
  const tried = positions.flatMap((position) => items[position] ?? []);
  const bytes = tried.reduce((sum, item) => sum + item.bytes, 0);
  const { workers, shareBytes } = sizesFor(memory, bytes);
  const context = pool.context(
    { inputs: [model.weights.map((source) => source.remote)], outputs: plan.files.map(() => null) },
    reader([model]),
  );
  const schedule = new Schedule(tried, Math.min(memory.transferJobBytes, shareBytes), workers);
  try {
    await dispatch(pool, context, schedule, workers, noOutput, () => {}, options.signal);
  } finally {
    await pool.release(context);
  }
  const errorOf = new Map(positions.map((position, item) => [tasks[position]?.tensor, schedule.error(item)]));
  return numbers.flatMap((number) => {
    const tensor = plan.tensors[number];
    return tensor ? [tensorReport(tensor, errorOf.get(number) ?? null)] : [];
  });
}
