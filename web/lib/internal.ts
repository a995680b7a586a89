// `wasmquant/internal`: what the page of this repository needs beyond the library. It may change in any release.

export * from './api/formats.js';

import type { Config, Model, Plan, PlanOptions, Quantizer } from './api/types.js';
import { withPlan } from './plan/plan.js';
import { EngineQuantizer } from './quantizer.js';

/** A plan made in this thread, at once: a long task for models with many tensors. Errors: those of `plan`. */
export function planNow(quantizer: Quantizer, model: Model, config: Config, options: PlanOptions = {}): Plan {
  if (!(quantizer instanceof EngineQuantizer)) throw new TypeError('not a quantizer of this library');
  const { instance, source, text, choices, settings } = quantizer.planTask(model, config, options);
  return withPlan(instance, source, text, choices, settings, (_, plan) => plan);
}
