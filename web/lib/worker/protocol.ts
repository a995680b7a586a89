// Messages between the pool and its workers. Everything is plain data; results are small, except for output pieces,
// whose buffers are transferred.
//
//   pool → worker                        worker → pool
//   start    compiled module             ready      or failed
//   context  files of a run
//   job      tile ranges, or sequences   done | failed | crashed, one each; progress before that, with calibrated blocks
//   bytes    answer to read              read       a range of a file that only the main thread can read
//   release  end of a run                released   its files are closed

import type { PlainError } from '../api/errors.js';
import type { RemoteSource } from '../io/source.js';

/** Doubles per unit of an error: Σx², Σy², Σ(x−y)², max|x−y|, count; how many x, and y, are NaN or infinite. */
export const sumsPerUnit = 7;

/** Files of one run. */
export interface ContextFiles {
  /** Models: the one to quantize, or reference and quantized. */
  inputs: RemoteSource[][];
  /** Paths that a worker writes itself; null = output is sent back. */
  outputs: (OutputPath | null)[];
}
export interface OutputPath {
  name: string;
  path: string;
}

/** A range of tiles [first, last) of one task. `task` is the core's JSON. */
export type JobPart =
  | { kind: 'observe'; item: number; task: string; first: number; last: number }
  | { kind: 'run'; item: number; task: string; first: number; last: number; state: Uint8Array | null }
  /** All tiles of a task that is observed first: observed, then run, in one session. */
  | { kind: 'observe-and-run'; item: number; task: string; first: number; last: number }
  | { kind: 'compare'; item: number; left: string; right: string; first: number; last: number }
  /** Sequences [first, last) of a batch through a whole model; `sums` of the result are their losses in nats. */
  | { kind: 'forward'; item: number; first: number; last: number; work: ForwardWork }
  /** One sequence, continued; `sums` of the result are the tokens that were added. */
  | { kind: 'continue'; item: number; first: number; last: number; work: ContinuationWork }
  /** What the linear layers of a model take in; `state` of the result is JSON text of what observers made of it. */
  | { kind: 'observe-inputs'; item: number; first: number; last: number; work: InputObservation }
  /** The blocks [first, last) of a model, calibrated and stored; results come with progress. */
  | { kind: 'calibrate'; item: number; first: number; last: number; work: CalibrationWork }
  /** One tensor of two models; `state` of the result is JSON text, `sums` are Σx², Σ(x−y)² of each channel. */
  | { kind: 'distribution'; item: number; first: number; last: number; work: DistributionWork }
  /** The same blocks, only measured; `sums` of the result are losses, one for each task. */
  | { kind: 'sensitivity'; item: number; first: number; last: number; work: SensitivityWork };

/** Tasks of the core's comparison of two models. Elements of a channel: `inner`. */
export interface DistributionWork {
  left: string;
  right: string;
  tiles: number;
  /** 1 where tiles are not whole rows. */
  channels: number;
  inner: number;
  bins: number;
}

/** A batch of sequences, and the steps of the core's forward plan. */
export interface ForwardWork {
  /** Text of config.json. */
  config: string;
  activations: 'float32' | 'int8';
  steps: ForwardStep[];
  /** Whole sequences of `length` tokens. */
  tokens: Int32Array;
  length: number;
}
export interface ForwardStep {
  name: string;
  /** `bytes`: as stored. Streamed tensors are worked on after each tile and not kept. */
  tensors: { slot: number; task: string; tiles: number; bytes: number; streamed: boolean }[];
}

/** A sequence, and how many tokens are to be added to it at most; one of `ends` is the last. */
export interface ContinuationWork extends Pick<ForwardWork, 'config' | 'steps' | 'tokens'> {
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
  /** By step; empty for steps that stay as they are. `item`: the tensor's number in the plan. */
  blocks: { slot: number; item: number; task: string }[][];
}
/** A batch of sequences, and what the linear layers of the blocks might be stored as. */
export interface SensitivityWork extends Omit<ForwardWork, 'activations'> {
  /** By step; empty for steps that are no block. */
  blocks: { slot: number; tasks: string[] }[][];
}
/** A block whose tensors are finished, or a tile of the embedding or the head. */
export interface StoredBlock {
  /** In the order in which they are finished. */
  block: number;
  pieces: Piece[];
  written: JobResult['written'];
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

export interface Job {
  /** Tensors in it, for messages. */
  label: string;
  /** Input bytes it reads. */
  bytes: number;
  parts: JobPart[];
}

/** A piece of an output file. */
export interface Piece {
  file: number;
  /** Absolute, in bytes. */
  offset: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Result of the part with the same position in the job. */
export interface PartResult {
  /** Units × 5 float64 in tile order: Σx², Σy², Σ(x−y)², max|x−y|, count. */
  sums: Float64Array;
  /** Observer state, of `observe` and `observe-inputs`. */
  state: Uint8Array | null;
}

export interface JobResult {
  parts: PartResult[];
  pieces: Piece[];
  /** Bytes that the worker wrote itself, by output file. */
  written: [file: number, bytes: number][];
}

export type ToWorker =
  | { type: 'start'; module: WebAssembly.Module }
  | { type: 'context'; context: number; files: ContextFiles }
  | { type: 'job'; id: number; context: number; job: Job }
  | { type: 'bytes'; request: number; bytes: Uint8Array }
  | { type: 'bytes-failed'; request: number; error: PlainError }
  | { type: 'release'; context: number };

export type FromWorker =
  | { type: 'ready' }
  /** `memoryBytes`, here and below: of the engine. */
  | { type: 'done'; id: number; result: JobResult; memoryBytes: number }
  | { type: 'failed'; id: number; error: PlainError }
  | { type: 'progress'; id: number; progress: WorkProgress; memoryBytes: number }
  /** The engine trapped, or could not be started: the worker is of no use any more. */
  | { type: 'crashed'; message: string }
  | { type: 'read'; request: number; context: number; input: number; file: number; offset: number; length: number }
  | { type: 'released'; context: number };

/** The pool's end of a worker. */
export interface Port {
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /** Both are set once, before the first message. `died`: the worker is gone or failed outside of any job. */
  listen(message: (message: FromWorker) => void, died: (reason: string) => void): void;
  /** Resolves when the worker runs no more; its files are closed then. */
  terminate(): Promise<void>;
  /** Whether the worker keeps the process alive. */
  hold(alive: boolean): void;
}
