// The core's plan of a forward pass: what is read, step by step, and how much memory it takes.

import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { TokenCalibration } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { comparedTiles, type MemoryPlan } from '../engine/memory.js';
import type { HeapBytes } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import { type TokenBatch, tokenBatch } from '../model/tokens.js';
import type { ForwardStep } from '../worker/jobs.js';

export interface ForwardPlanJson {
  /** Text of config.json, or what a GGUF model's metadata say. */
  config: string;
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
  /** The tasks of all steps, packed. */
  work: Uint8Array;
}

/** A worker's own code and heap, a tile as stored and as float32, packed matrices. */
export const forwardBesidesBytes = 12 * 1024 * 1024;

/** A batch of sequences, and the forward pass on it. */
export interface ForwardBatch {
  tokens: TokenBatch;
  plan: ForwardPlanJson;
}

/** What the pass is for. Only a run takes GGUF models; `source`: the folder that one was made from. */
export interface ForwardUse {
  runs?: boolean;
  source?: OpenedModel | undefined;
}

/** Tokens that fit the model. Errors: those of tokenBatch and forwardPlanOf. */
export async function forwardBatchOf(
  instance: Instance,
  model: OpenedModel,
  { tokens: input, tensor }: TokenCalibration,
  use: ForwardUse = {},
): Promise<ForwardBatch> {
  const { vocabulary, maxPositions } = forwardPlanOf(instance, model, 1, use);
  const tokens = await tokenBatch(input, tensor, vocabulary, maxPositions);
  return { tokens, plan: forwardPlanOf(instance, model, tokens.length, use) };
}

/**
 * For work on a block with the whole batch in one worker; `needsReference`: activations, block and statistics of the
 * model without quantization, too. Errors: memory-budget.
 */
export function checkBlockMemory(
  memory: MemoryPlan,
  { tokens, plan }: ForwardBatch,
  needsReference: boolean = false,
): void {
  const blockBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const copies = needsReference ? 2 : 1;
  const activations = copies * tokens.ids.length * plan.tokenBytes;
  const statistics = plan.workingBytes + copies * plan.calibrationBytes;
  const needed = (1 + copies) * blockBytes + activations + statistics + forwardBesidesBytes;
  if (needed <= memory.shareBytes) return;
  const detail = `calibration needs ${needed + memory.hostBytes} bytes: ${activations} for activations of ${tokens.ids.length} tokens, the rest for one block and its statistics; give that much, or fewer tokens`;
  throw failure('memory-budget', 'memoryBudgetBytes', detail);
}

/** For sequences of `length` tokens. Errors: not-implemented for unknown families, tensor-missing, shape-mismatch... */
export function forwardPlanOf(
  instance: Instance,
  model: OpenedModel,
  length: number,
  { runs = false, source }: ForwardUse = {},
): ForwardPlanJson {
  const index = model.indexFor(instance);
  // A GGUF file describes itself; a config.json beside it may be of anything.
  const config = formats.inputs[model.format].carriesConfig ? (source?.configText ?? '') : model.configText;
  const options = JSON.stringify({ ...comparedTiles, length, runs });
  const { work, ...plan } = instance.call<Omit<ForwardPlanJson, 'work'> & { work: HeapBytes }>((module) =>
    module.forwardPlan(index, config, options),
  );
  return { ...plan, work: instance.copyOut(work.pointer, work.bytes) };
}
