// What workers do: each kind of job, what it is told and what it gives back. All of it is plain data.

import type { Distribution } from '../api/distribution_types.js';
import type { FoundActivations } from '../engine/forward_module.js';

/** Doubles per unit of an error: Σx², Σy², Σ(x−y)², max|x−y|, count; how many x, and y, are NaN or infinite. */
export const sumsPerUnit = 7;

/** What each kind of work is told, and what it gives back. */
export interface JobKinds {
  /** Tiles of a tensor that is observed before any of it is quantized. */
  observe: { work: QuantizeWork; result: TileResult };
  /** Tiles are quantized and written; `state`: merged from all that was observed. */
  run: { work: QuantizeWork & { state: Uint8Array | null }; result: TileResult };
  /** All tiles of a task that is observed first: observed, then run, in one session. */
  'observe-and-run': { work: QuantizeWork; result: TileResult };
  /** Tiles of two models. */
  compare: { work: TileRange & { pair: number }; result: TileResult };
  /** One tensor of two models. */
  distribution: { work: DistributionWork; result: FoundDistribution };
  /** Sequences through a whole model: the loss of each, in nats. */
  forward: { work: ForwardWork; result: Float64Array };
  /** One sequence, continued: the tokens that were added. */
  continue: { work: ContinuationWork; result: number[] };
  /** What the linear layers of a model take in, as observers see it. */
  'observe-inputs': { work: InputObservation; result: FoundActivations };
  /** The blocks of a model, calibrated and stored; what they become comes with progress. */
  calibrate: { work: CalibrationWork; result: null };
  /** The same blocks, only measured: losses, one for each task. */
  sensitivity: { work: SensitivityWork; result: number[] };
}
export type JobKind = keyof JobKinds;
/** Work on tiles, which a Schedule hands out. */
export type TileKind = 'observe' | 'run' | 'observe-and-run' | 'compare';

/** One piece of a job, by its kind. */
export type JobPart<K extends JobKind = JobKind> = { [P in K]: { kind: P } & JobKinds[P]['work'] }[K];

export interface Job<K extends JobKind = JobKind> {
  /** Tensors in it, for messages. */
  label: string;
  /** Input bytes it reads. */
  bytes: number;
  parts: JobPart<K>[];
}

export interface JobResult<K extends JobKind = JobKind> extends WrittenBytes {
  /** In the order of the job's parts. */
  parts: JobKinds[K]['result'][];
}

/** Output of a job. */
export interface WrittenBytes {
  pieces: Piece[];
  /** Bytes that the worker wrote itself, by output file. */
  written: [file: number, bytes: number][];
}

/** A piece of an output file. */
export interface Piece {
  file: number;
  /** Absolute, in bytes. */
  offset: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Tiles [first, last) of one tensor; `item`: its number in the schedule. */
export interface TileRange {
  item: number;
  first: number;
  last: number;
}
/** A task that the core packed: number of its array in `ContextFiles.work`, and its own number there. */
export interface TaskNumber {
  work: number;
  task: number;
}
export type QuantizeWork = TileRange & TaskNumber;

export interface TileResult {
  /** Units × 7 float64 in tile order (`sumsPerUnit`). */
  sums: Float64Array;
  /** Observer state, of `observe`. */
  state: Uint8Array | null;
}

/** A pair of the core's comparison of two models. Elements of a channel: `inner`. */
export interface DistributionWork {
  pair: number;
  tiles: number;
  /** 1 where tiles are not whole rows. */
  channels: number;
  inner: number;
  bins: number;
}
/** What is found; `sums`: Σx², Σ(x−y)² of each channel. */
export interface FoundDistribution extends Omit<Distribution, 'channelSqnrDb'> {
  sums: Float64Array;
}

/** A batch of sequences, and the steps of the core's forward plan. */
export interface ForwardWork {
  /** Text of config.json. */
  config: string;
  activations: 'float32' | 'int8';
  steps: ForwardStep[];
  /** Which of `ContextFiles.work` has the tasks of the steps. */
  reads: number;
  /** Whole sequences of `length` tokens. */
  tokens: Int32Array;
  length: number;
}
export interface ForwardStep {
  name: string;
  /** `bytes`: as stored. Streamed tensors are worked on after each tile and not kept. */
  tensors: { slot: number; task: number; tiles: number; bytes: number; streamed: boolean }[];
}

/** A sequence, and how many tokens are to be added to it at most; one of `ends` is the last. */
export interface ContinuationWork extends Pick<ForwardWork, 'config' | 'steps' | 'reads' | 'tokens'> {
  count: number;
  ends: number[];
}

/** A batch of sequences, and what a plan asks of the inputs that it makes. */
export interface InputObservation extends Omit<ForwardWork, 'activations'> {
  /** The core's JSON text. */
  requests: string;
}

/** A batch of sequences, and what becomes of the blocks it goes through. */
export interface CalibrationWork extends Omit<ForwardWork, 'activations'> {
  /** Text of the quantization config. */
  quantization: string;
  /** Blocks of the model; step 0 is the embedding. */
  layers: number;
  /** By step; empty for steps that stay as they are. `item`: number of the task in the plan, the first of
   * `ContextFiles.work`. */
  blocks: { slot: number; item: number }[][];
}
/** A batch of sequences, and what the linear layers of the blocks might be stored as. */
export interface SensitivityWork extends Omit<ForwardWork, 'activations'> {
  /** By step; empty for steps that are no block. */
  blocks: { slot: number; tasks: TaskNumber[] }[][];
}
/** A block whose tensors are finished, or a tile of the embedding or the head. */
export interface StoredBlock extends WrittenBytes {
  /** In the order in which they are finished. */
  block: number;
  /** By number in the plan; empty for tensors that kept their dtype. */
  sums: [item: number, sums: Float64Array][];
}

/** What a job got done since its last report. */
export interface WorkProgress {
  phase?: 'calibrate' | 'optimize';
  stored?: StoredBlock;
  /** Worked on last. */
  name: string;
  /** Input bytes. */
  bytes: number;
  /** Tensors that are finished. */
  tensors: number;
}
