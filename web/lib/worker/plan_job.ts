// Plans a model with many tensors, away from the thread that asks.

import { makePlan, rowsAtOnce } from '../engine/bound_plan.js';
import { toldIndex } from '../engine/index_calls.js';
import type { Instance } from '../engine/instance.js';
import type { BoundModelIndex } from '../engine/module.js';
import type { JobHost } from './job_host.js';
import type { PlanTexts, PlanWork } from './jobs.js';

/** The model that an instance has planned last: it is often planned again. */
const indexes = new WeakMap<Instance, { model: number; index: BoundModelIndex }>();

function indexOf(instance: Instance, { model, calls }: PlanWork): BoundModelIndex {
  const last = indexes.get(instance);
  if (last?.model === model) return last.index;
  if (last) instance.free(last.index);
  indexes.delete(instance);
  const index = toldIndex(instance, calls);
  indexes.set(instance, { model, index });
  return index;
}

export async function runPlan({ instance, pause }: JobHost, work: PlanWork): Promise<PlanTexts> {
  const index = indexOf(instance, work);
  const config = instance.run((module) => new module.Config(work.config));
  try {
    const bound = makePlan(instance, index, config, work.request);
    try {
      const head = instance.text(() => bound.json());
      const { totals } = JSON.parse(head) as { totals: { tensors: number } };
      const rows: string[] = [];
      for (let first = 0; first < totals.tensors; first += rowsAtOnce) {
        await pause();
        rows.push(instance.text(() => bound.tensors(first, first + rowsAtOnce)));
      }
      return { head, rows };
    } finally {
      instance.free(bound);
    }
  } finally {
    instance.free(config);
  }
}
