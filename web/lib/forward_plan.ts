// The core's plan of a forward pass: what is read, step by step, and how much memory it takes.

import type { Instance } from './instance.js';
import { comparedTiles } from './memory.js';
import type { OpenedModel } from './model.js';
import type { ForwardStep } from './protocol.js';

export interface ForwardPlanJson {
  vocabulary: number;
  maxPositions: number;
  /** Memory per token of a batch, and besides, in bytes. */
  tokenBytes: number;
  workingBytes: number;
  /** Besides that, for the calibration of a block. */
  calibrationBytes: number;
  steps: {
    name: string;
    floatBytes: number;
    tensors: (ForwardStep['tensors'][number] & { name: string })[];
  }[];
}

/** A worker's own code and heap, a tile as stored and as float32, packed matrices. */
export const forwardBesidesBytes = 12 * 1024 * 1024;

/** For sequences of `length` tokens. Errors: not-implemented for unknown families, tensor-missing, shape-mismatch... */
export function forwardPlanOf(instance: Instance, model: OpenedModel, length: number): ForwardPlanJson {
  const index = model.indexFor(instance);
  return instance.call<ForwardPlanJson>((module) =>
    module.forwardPlan(index, model.configText, JSON.stringify({ ...comparedTiles, length })),
  );
}
