// The core's plan of a forward pass: reads per step, and memory.

import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { TokenCalibration } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { comparedTiles, type MemoryPlan } from '../engine/memory.js';
import type { HeapBytes } from '../engine/module.js';
import { OpenedModel } from '../model/model.js';
import { longestOf, type TokenBatch, tokenBatch, type Windows } from '../model/tokens.js';
import type { ForwardStep } from '../worker/jobs.js';

export interface ForwardPlanJson {
  /** Tokens behind which a text ends. */
  ends: number[];
  /** An encoder-decoder: it reads the first half of a sequence, and predicts the second. */
  splits?: boolean;
  vocabulary: number;
  maxPositions: number;
  /** Memory per token of a batch, and fixed memory, in bytes. */
  tokenBytes: number;
  workingBytes: number;
  /** Memory per token for keys and values of a sequence that is continued, in bytes. */
  cacheBytes: number;
  /** Memory per token that saves calibration from running a block's beginning again, in bytes. */
  stateBytes: number;
  /** Additional fixed memory for calibrating a block, in bytes. */
  calibrationBytes: number;
  /** What an algorithm that holds out inputs needs in addition. */
  heldOutBytes: number;
  steps: {
    name: string;
    floatBytes: number;
    /** Memory that a continued sequence saves reading the step again with. */
    keptBytes: number;
    /** `stack`: a tensor that has this one of all experts, whose gate is `part` 0, up 1, down 2. `alternates`: a gate with the rows of its up. `fixed`: no algorithm changes it. */
    tensors: (ForwardStep['tensors'][number] & {
      name: string;
      stack?: string;
      part?: number;
      alternates?: boolean;
      fixed?: boolean;
    })[];
  }[];
  /** For the workers, packed. */
  architecture: Uint8Array;
  work: Uint8Array;
}

/** A worker's code and heap, a tile stored and as float32, packed matrices. */
export const forwardOverheadBytes = 12 * 1024 * 1024;

export interface ForwardBatch {
  tokens: TokenBatch;
  plan: ForwardPlanJson;
}

/** Purpose of the pass; default calibrate; measure accepts no mixtures. Embed is for encoders, compare for those without a decoder behind them. `source`: the folder that a GGUF file was
 * made from; default that of the tokens. */
export interface ForwardUse {
  use?: 'run' | 'calibrate' | 'measure' | 'embed' | 'compare';
  source?: OpenedModel | undefined;
  /** How text is cut; default adjoining. */
  windows?: Windows;
}

/** Tokens checked against the model. Errors: those of tokenBatch and forwardPlanOf. */
export async function forwardBatchOf(
  instance: Instance,
  model: OpenedModel,
  { tokens: input, tensor, source }: TokenCalibration,
  given: ForwardUse = {},
): Promise<ForwardBatch> {
  if (source !== undefined && !(source instanceof OpenedModel))
    throw failure('argument-invalid', 'source', 'was not opened by this library');
  const how = { ...given, source: given.source ?? source };
  const { vocabulary, maxPositions } = forwardPlanOf(instance, model, 1, how);
  const tokens = await tokenBatch(input, tensor, vocabulary, maxPositions, how.windows);
  return { tokens, plan: forwardPlanOf(instance, model, longestOf(tokens), how) };
}

/** How calibration uses its memory: a team of workers, each of which has a block and runs a part of the batch. */
export interface BlockTeam {
  members: number;
  /** Whether `stateBytes` fit, too. */
  keepsStates: boolean;
}

/** The largest team whose memory fits, with states where they fit one worker, since they save more than half of the work;
 * one worker if `needsReference`: for the unquantized model a block and the batch come twice. Errors: memory-budget. */
export function planBlockTeam(
  memory: MemoryPlan,
  { tokens, plan }: ForwardBatch,
  needsReference: boolean = false,
  holdsOut: boolean = false,
): BlockTeam {
  const blockBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const copies = needsReference ? 2 : 1;
  const activations = copies * tokens.ids.length * plan.tokenBytes;
  // Twice: inputs that are shown to others are no more than a portion's activations.
  const heldOut = holdsOut ? plan.heldOutBytes : 0;
  const statistics = 2 * plan.workingBytes + copies * plan.calibrationBytes + heldOut;
  const perMember = (1 + copies) * blockBytes + statistics + forwardOverheadBytes;
  const states = tokens.ids.length * plan.stateBytes;
  const left = memory.shareBytes - activations;
  const keepsStates = perMember + states <= left;
  // What members tell each other waits to be read, then to be collected: rounded weights, and sums of Hessians.
  const perTeamMember = perMember + blockBytes + plan.calibrationBytes;
  const room = keepsStates ? left - states : left;
  const fitting = perMember > room ? 0 : Math.max(1, Math.floor(room / perTeamMember));
  const members = needsReference ? 1 : Math.min(Math.max(1, memory.threads), tokens.lengths.length, fitting);
  if (fitting > 0) return { members, keepsStates };
  const detail = `calibration needs ${perMember + activations + memory.hostBytes} bytes: ${activations} for activations of ${tokens.ids.length} tokens, the rest for one block and its statistics; give that much, or fewer tokens`;
  throw failure('memory-budget', 'memoryBudgetBytes', detail);
}

/** For sequences of at most `longest` tokens. Errors: not-implemented for unknown families, tensor-missing, shape-mismatch... */
export function forwardPlanOf(
  instance: Instance,
  model: OpenedModel,
  longest: number,
  { use = 'calibrate', source }: ForwardUse = {},
): ForwardPlanJson {
  const index = model.indexFor(instance);
  // GGUF describes itself; a config.json in its folder may be unrelated.
  const described = source && formats.inputs[model.format].carriesConfig ? source.indexFor(instance) : index;
  const options = JSON.stringify({ ...comparedTiles, longest, use });
  const { facts, regions } = instance.parts<Omit<ForwardPlanJson, 'architecture' | 'work'>>((module) =>
    module.forwardPlan(index, described, options),
  );
  const { architecture, work } = regions as Record<'architecture' | 'work', HeapBytes>;
  return {
    ...facts,
    architecture: instance.copyOut(architecture.pointer, architecture.bytes),
    work: instance.copyOut(work.pointer, work.bytes),
  };
}
