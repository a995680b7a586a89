// The plan that a caller asks for. That of a model with many tensors is made by a worker, and its rows are read in pieces, so that a
// page stays responsive.

import { PlanReader, type PlanRows } from '../api/plan_json.js';
import type { Plan, PlannedTensor } from '../api/types.js';
import { nextTask } from '../io/abort.js';
import type { OpenedModel } from '../model/model.js';
import { type RunResources, runOne } from '../pool/run_resources.js';
import { type CorePlanOptions, planRequest, type RunPlanOptions, withPlan } from './plan.js';

/** What is to be planned. */
export interface PlanTask {
  source: OpenedModel;
  /** The config. */
  text: string;
  choices: RunPlanOptions;
  settings: CorePlanOptions;
}

/** Errors: those of `withPlan`, worker-crashed. */
export async function planModel(resources: RunResources, task: PlanTask, signal: AbortSignal): Promise<Plan> {
  const { instance, pool, memory } = resources;
  const { source, text, choices, settings } = task;
  const calls = source.callsFor(instance);
  signal.throwIfAborted();
  // It does not wait for workers that are busy.
  if (!calls || memory.threads === 0 || !pool.isFree)
    return withPlan(instance, source, text, choices, settings, (_, plan) => plan);
  const request = planRequest(source, choices, settings);
  const part = { kind: 'plan' as const, model: source.id, calls, config: text, request };
  const job = { label: source.name, bytes: 0, part };
  const { head, rows } = await runOne(resources, { models: [], work: [] }, job, signal);
  const { format, ...rest } = JSON.parse(head) as Omit<Plan, 'tensors'>;
  const reader = new PlanReader(rest.files, { model: source.tensors });
  for (const piece of rows) {
    await nextTask();
    signal.throwIfAborted();
    reader.add(JSON.parse(piece) as PlanRows);
  }
  return { format, tensors: reader.tensors as PlannedTensor[], ...rest };
}
