// The kinds of jobs, with their inputs and results, all plain data.

import type { EvaluateOptions } from '../api/calibration_types.js';
import type { Distribution } from '../api/compare_types.js';
import type { EmbeddingOptions } from '../api/language_model_types.js';
import type { PlanRequest } from '../engine/bound_plan.js';
import type { FoundActivations, LayerEvidence } from '../engine/forward_module.js';
import type { IndexCall } from '../engine/index_calls.js';

/** Doubles per unit of an error: Σx², Σy², Σ(x−y)², max|x−y|, count; NaN or infinite x, then y. */

/** Doubles per position of a divergence: KL(reference || model), losses of the model and of the reference, all in nats, and 1
 * where the most probable token is the same. */
export const valuesPerPosition = 4;

export interface JobKinds {
  /** Observes tiles of a tensor that must be observed before quantizing. */
  observe: { work: QuantizeWork; result: TileResult };
  /** Quantizes and writes tiles; `state`: merged from all observations. */
  run: { work: QuantizeWork & { state: Uint8Array | null }; result: TileResult };
  /** Observes, then runs all tiles of a task in one session. */
  'observe-and-run': { work: QuantizeWork; result: TileResult };
  compare: { work: TileRange & PairNumber; result: TileResult };
  distribution: { work: DistributionWork; result: FoundDistribution };
  /** Sequences through a whole model: the loss of each, in nats. */
  forward: { work: ForwardWork; result: Float64Array };
  /** Sequences through an encoder: the embedding of each, one after another. */
  embed: { work: EmbeddingWork; result: Float32Array };
  /** Sequences through a reference, once, and models: `valuesPerPosition` values of every scored position, model by model. */
  divergence: { work: DivergenceWork; result: Float64Array };
  /** Continues a sequence: the added tokens. */
  continue: { work: ContinuationWork; result: number[] };
  /** Observes the inputs of a model's linear layers. */
  'observe-inputs': { work: InputObservation; result: FoundActivations };
  /** Calibrates and stores a model's blocks; results come with progress. */
  calibrate: { work: CalibrationWork; result: null };
  /** Measures the blocks: a loss for each task. */
  sensitivity: { work: SensitivityWork; result: number[] };
  /** Plans a run. */
  plan: { work: PlanWork; result: PlanTexts };
}
export type JobKind = keyof JobKinds;
/** Work on tiles, distributed by the job queue. */
export type TileKind = 'observe' | 'run' | 'observe-and-run' | 'compare';

export type JobPart<K extends JobKind = JobKind> = { [P in K]: { kind: P } & JobKinds[P]['work'] }[K];

export interface Job<K extends JobKind = JobKind> {
  /** Tensors in it, for messages. */
  label: string;
  bytes: number;
  parts: JobPart<K>[];
  /** Workers that do it as a team; 1 if absent. */
  members?: number;
}

export interface JobResult<K extends JobKind = JobKind> extends WrittenBytes {
  parts: JobKinds[K]['result'][];
}

export interface WrittenBytes {
  pieces: Piece[];
  /** Bytes the worker wrote itself, by output file. */
  written: [file: number, bytes: number][];
}

export interface Piece {
  file: number;
  /** Absolute, in bytes. */
  offset: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Tiles [first, last) of one tensor; `item`: its index in the schedule. */
export interface TileRange {
  item: number;
  first: number;
  last: number;
}
/** A packed task: the index of its array in `ContextFiles.work`, and its index there. */
export interface TaskNumber {
  work: number;
  task: number;
}
/** A pair of the core's comparison: the index of its array, whose tasks 2 * pair and 2 * pair + 1 are its sides. */
export interface PairNumber {
  work: number;
  pair: number;
}
/** `tiles`: of the task; those of a range from there on are of joined weights, which are only observed. */
export type QuantizeWork = TileRange & TaskNumber & { tiles: number };

export interface TileResult {
  /** Units × 7 float64 in tile order (`sumsPerUnit`). */
  sums: Float64Array;
  /** Observer state, for `observe`. */
  state: Uint8Array | null;
}

/** `inner`: elements per channel. */
export interface DistributionWork extends PairNumber {
  tiles: number;
  /** 1 if tiles are not whole rows. */
  channels: number;
  inner: number;
  bins: number;
}
/** Results; `sums`: Σx², Σ(x−y)² per channel. */
export interface FoundDistribution extends Omit<Distribution, 'channelSqnrDb'> {
  sums: Float64Array;
}

/** Precision of the inputs of linear layers. */
export type Activations = NonNullable<EvaluateOptions['activations']>;

/** A batch of sequences and the steps of its forward plan. */
export interface ForwardWork {
  /** Packed. */
  architecture: Uint8Array;
  activations: Activations;
  steps: ForwardStep[];
  /** Index of the steps' tasks in `ContextFiles.work`. */
  reads: number;
  /** Sequences one after another, and the number of tokens of each. */
  tokens: Int32Array;
  lengths: number[];
  /** Whether blocks that calibration runs part by part go on where they ended, for `stateBytes` a token. */
  keepsStates?: boolean;
  /** Positions whose losses count: all, or of each sequence the second half. Default: all. */
  scored?: 'all' | 'second-half';
  /** Of one sequence that is continued: its tokens at most. Their keys and values are kept. */
  positions?: number;
  /** Index of the files in `ContextFiles.inputs`; default 0. */
  model?: number;
  /** Tensors that the pass runs with as tasks of a plan would store them. */
  replaced?: ReplacedTensor[];
}
export interface ReplacedTensor extends TaskNumber {
  step: number;
  slot: number;
}
/** How the states of a sequence become one embedding: their mean, or that of the first token. */
export interface EmbeddingWork extends ForwardWork {
  pooling: NonNullable<EmbeddingOptions['pooling']>;
}
/** The same tokens for all. */
export interface DivergenceWork {
  reference: ForwardWork;
  models: ForwardWork[];
}
export interface ForwardStep {
  name: string;
  /** `bytes`: as stored. Streamed tensors are processed per tile and not kept. */
  tensors: { slot: number; task: number; tiles: number; bytes: number; streamed: boolean }[];
}

/** A sequence to continue by at most `count` tokens; any of `ends` is the last. */
export interface ContinuationWork extends Pick<ForwardWork, 'architecture' | 'steps' | 'reads' | 'tokens'> {
  count: number;
  ends: number[];
  /** By step: whether its weights stay in memory from token to token. */
  kept: boolean[];
}

/** A batch of sequences, and a plan's requests for their layer inputs. */
export interface InputObservation extends Omit<ForwardWork, 'activations'> {
  /** The core's JSON text. */
  requests: string;
}

/** A batch of sequences, and the plan for the blocks. */
export interface CalibrationWork extends Omit<ForwardWork, 'activations'> {
  quantization: string;
  /** Number of blocks; step 0 is the embedding. */
  layers: number;
  /** By step; empty for unchanged steps. `items`: task indexes in the plan, the first of
   * `ContextFiles.work`; none: not stored; several: tensors of the file that have its rows. */
  blocks: { slot: number; items: number[] }[][];
}
/** A batch of sequences, and candidate tasks for the blocks' linear layers. */
export interface SensitivityWork extends Omit<ForwardWork, 'activations'> {
  /** By step; empty for steps that are not blocks. */
  blocks: { slot: number; tasks: TaskNumber[] }[][];
}
/** A model, as its index was told of it, and what is to be planned. */
export interface PlanWork {
  /** The same number is the same model. */
  model: number;
  calls: IndexCall[];
  config: string;
  request: PlanRequest;
}
/** JSON of a plan without its tensors, and of their rows in pieces: a text is read by the other thread in no time. */
export interface PlanTexts {
  head: string;
  rows: string[];
}
/** A block with finished tensors, or a tile of embedding or head. */
export interface StoredBlock extends WrittenBytes {
  /** In order of completion. */
  block: number;
  /** By plan index; empty for tensors that kept their dtype. */
  sums: [item: number, sums: Float64Array][];
  /** By plan index; of layers that an algorithm changed by their inputs. */
  evidence: [item: number, evidence: LayerEvidence][];
}

export interface WorkProgress {
  phase?: 'calibrate' | 'optimize';
  stored?: StoredBlock;
  name: string;
  bytes: number;
  tensors: number;
}
