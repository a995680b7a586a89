// Quantizes some tensors as in a run, without writing anything.

import { failure } from '../api/errors.js';
import type { PreviewOptions, TensorReport } from '../api/types.js';
import type { OpenedModel } from '../model/model.js';
import { packPlan } from '../plan/packed_plan.js';
import { tensorReport } from '../pool/report.js';
import { measureErrors, type RunResources } from '../pool/run_resources.js';

/** Errors: those of plans, tensor-missing, those of reading and quantizing. Skips calibrated algorithms. */
export async function previewTensors(
  resources: RunResources,
  model: OpenedModel,
  config: string,
  tensors: readonly string[],
  options: PreviewOptions,
): Promise<TensorReport[]> {
  options.signal?.throwIfAborted();
  const { instance, memory } = resources;
  const { plan, items, work } = await packPlan(instance, model, config, options, memory.tiles);
  const numbers = tensors.map((name) => plan.tensors.findIndex((tensor) => tensor.name === name));
  const missing = numbers.indexOf(-1);
  if (missing >= 0) throw failure('tensor-missing', tensors[missing] ?? '', 'is not in the model');
  const positions = items.flatMap(({ tensor }, item) => (numbers.includes(tensor) ? [item] : []));
  const tried = positions.flatMap((position) => items[position] ?? []);
  const bytes = tried.reduce((sum, item) => sum + item.bytes, 0);
  const sizes = { input: bytes, job: memory.transferJobBytes };
  const schedule = await measureErrors(resources, { models: [model], work }, tried, sizes, options.signal);
  const errorOf = new Map(positions.map((position, item) => [items[position]?.tensor, schedule.error(item)]));
  return numbers.flatMap((number) => {
    const tensor = plan.tensors[number];
    return tensor ? [tensorReport(tensor, { error: errorOf.get(number) ?? null })] : [];
  });
}
