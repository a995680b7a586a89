/** The part of the WebAssembly module that runs a model on tokens. Each class is one stage, constructed from the
 * previous one, so methods cannot be called out of order. Stages may be deleted in any order. */
import type { BoundWork } from './bound_work.js';

/** A forward pass of a batch of sequences: steps of the plan in order, tensors of a step in order. */
export interface BoundForwardPass {
  portions(): number;
  /** Starts a tensor of a step. */
  begin(step: number, slot: number, work: BoundWork, task: number): boolean;
  /** Reads. */
  reads(tile: number): number;
  /** Decodes the tile read last. */
  load(tile: number): boolean;
  /** From now on runs with what a plan's task would store of a tensor in its place. */
  replace(step: number, slot: number, work: BoundWork, task: number): boolean;
  /** Runs a portion: for streamed tensors after each load, else once the step is loaded. */
  run(portion: number): boolean;
  /** 1 if a token of the batch is in the rows of a tile, else 0; of embeddings, other tiles need not be loaded. */
  needs(tile: number): number;
  /** Of one sequence that is continued (`positions`): keeps what was run last, so that its step runs without being loaded. */
  keep(): boolean;
  /** Runs a step all of which was kept. */
  runKept(step: number): boolean;
  /** The batch is now this token, behind those before; every step has run on these. */
  extend(token: number): boolean;
  /** After the last step. A region: float64 loss per sequence, in nats. */
  losses(): number;
  /** Of an encoder, after the last step. A region: float32, an embedding for each sequence. */
  embeddings(pooling: string): number;
  /** After the last step: the most probable token after a sequence; -1 if a logit is not finite. */
  nextToken(sequence: number): number;
  delete(): void;
}

/** A model's predictions and a reference's: two passes of the same tokens, whose heads are loaded tile by tile. */
export interface BoundDivergence {
  /** JSON `{reference, model}`: whether to load the next tile of its head. */
  behind(): string;
  /** Compares a portion's logits of the tokens that both heads have loaded. */
  run(portion: number): boolean;
  /** After the last tile of both. A region: float64, `valuesPerPosition` for each scored position. */
  positions(): number;
  delete(): void;
}

/** Calibration results for the requests of a plan. */
export interface FoundActivations {
  found: object[];
  /** Batches of layers without requests. */
  unused: number;
}

/** The observers of a plan, fed with batches of activations or by a pass. */
export interface BoundActivationObserver {
  /** An observer that needs a second pass over the data, or "". */
  secondPass(): string;
  /** Begins a batch. 1 if it is needed, else 0. */
  begin(layer: string, role: string, shape: string): number;
  /** The batch's next `count` elements. */
  update(pointer: number, dtype: string, count: number): boolean;
  /** Observes the linear-layer inputs of `pass` from now on. */
  watch(pass: BoundForwardPass): void;
  /** After all data. 1 if another pass is needed, else 0. */
  nextPass(): number;
  /** JSON `FoundActivations`. */
  finish(): string;
  delete(): void;
}

/** The algorithms of a config, to be created before the pass's first step. */
export interface BoundCalibration {
  delete(): void;
}

/** Calibrates the loaded block: parts in order, then `store` for each tensor. */
export interface BoundBlockCalibrator {
  /** JSON `number[][]`: the portions that each part must capture first. */
  parts(): string;
  /** Runs a portion and keeps the inputs that a part needs; activations stay. Regions, the inputs. */
  record(part: number, portion: number): number;
  /** Makes room for those of a portion that another worker recorded. `bytes`: JSON `number[]`, of each. Regions. */
  expect(part: number, bytes: string): number;
  /** Shows the part the inputs recorded last, or (`isOwn` false) those received. Portions come in order. */
  show(isOwn: boolean): boolean;
  /** After all portions of a part: the sums over inputs that a member of the team makes, to be exchanged before
   * `optimize`. Regions. */
  sums(member: number): number;
  /** Changes weights. 1 if the part is done; else 0: the members of the team exchange their `results`, and call it again. */
  optimize(part: number): number;
  /** What a member has made of the part since the last `optimize`. Regions. */
  results(member: number): number;
  /** Quantizes a tensor and replaces it by the decoded values. A tile. */
  store(slot: number): number;
  /** After all parts: what its inputs say about a layer. JSON `LayerEvidence | null`. */
  evidence(slot: number): string;
  delete(): void;
}

/** Expected squares of a layer's outputs, as src/pipeline/calibration/layer_evidence.h has them. */
export interface LayerEvidence {
  tokens: number;
  columns: number;
  rank: number;
  signal: number;
  error: number;
  nearestError: number;
  aimsAtFloat: boolean;
  isNearest: boolean;
}

/** Rotates embedding, final norm and head. */
export interface BoundEmbeddingRotation {
  /** Rotates and quantizes the tile loaded last; the pass continues with the decoded values. A tile. */
  store(): number;
  delete(): void;
}

/** Estimates the effect of quantizing one layer of the loaded block. */
export interface BoundSensitivityProbe {
  /** Runs a portion and records the inputs of the block's layers. */
  run(portion: number): boolean;
  /** After all portions: relative squared error of the residual stream with only this layer quantized. */
  measure(slot: number, work: BoundWork, task: number): number;
  delete(): void;
}

export interface ForwardModule {
  /** `architecture`: of forwardPlan. `options`: JSON `{activations, lengths, keepsStates?, scored?, positions?}`. `tokens`: int32, sequences of `lengths`. */
  ForwardPass: {
    make(architecture: number, bytes: number, options: string, tokens: number, count: number): BoundForwardPass | null;
  };
  Divergence: { make(reference: BoundForwardPass, model: BoundForwardPass): BoundDivergence | null };
  /** `requests`: the plan's. */
  ActivationObserver: { make(requests: string): BoundActivationObserver | null };
  /** `config`: the quantization config. One of `members` that are shown the same inputs and divide the work. */
  Calibration: {
    make(pass: BoundForwardPass, config: string, member: number, members: number): BoundCalibration | null;
  };
  /** `work`: the plan's; `tasks`: JSON `[{slot, task}]`. */
  BlockCalibrator: {
    make(calibration: BoundCalibration, work: BoundWork, tasks: string): BoundBlockCalibrator | null;
  };
  EmbeddingRotation: {
    make(calibration: BoundCalibration, slot: number, work: BoundWork, task: number): BoundEmbeddingRotation | null;
  };
  SensitivityProbe: new (pass: BoundForwardPass) => BoundSensitivityProbe;
}
