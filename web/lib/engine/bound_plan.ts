// A plan in the core, for the thread that asks and for workers.

import type { Instance } from './instance.js';
import type { BoundConfig, BoundModelIndex, BoundPlan } from './module.js';

/** Plain data. */
export interface PlanRequest {
  /** As `Plan.make` takes them. */
  options: object;
  /** An importance matrix, or nothing. */
  imatrix: Uint8Array;
  /** Bytes of the model that an earlier plan wanted. */
  constants: Uint8Array;
}

/** Rows of a plan that are read together. */
export const rowsAtOnce = 1024;

/** The caller frees it. Errors: config-invalid, format-unsupported, not-implemented... */
export function makePlan(
  instance: Instance,
  index: BoundModelIndex,
  config: BoundConfig,
  { options, imatrix, constants }: PlanRequest,
): BoundPlan {
  const text = JSON.stringify(options);
  return instance.withBytes(imatrix, (pointer) =>
    instance.withBytes(constants, (at) =>
      instance.make((module) => module.Plan.make(index, config, text, at, constants.length, pointer, imatrix.length)),
    ),
  );
}
