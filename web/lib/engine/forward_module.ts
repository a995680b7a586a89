/** The part of the WebAssembly module that runs a model on tokens. Each class is one stage, constructed from the
 * previous one, so methods cannot be called out of order. Stages may be deleted in any order. */
import type { BoundWork } from './bound_work.js';

/** A forward pass of a batch of sequences: steps of the plan in order, tensors of a step in order. */
export interface BoundForwardPass {
  /** JSON number; call first, it returns the constructor's error. */
  portions(): string;
  /** Starts a tensor of a step. JSON null. */
  begin(step: number, slot: number, work: BoundWork, task: number): string;
  /** JSON `TileRead[]`. */
  reads(tile: number): string;
  /** Decodes the tile read last. JSON null. */
  load(tile: number): string;
  /** Runs a portion: for streamed tensors after each load, else once the step is loaded. JSON null. */
  run(portion: number): string;
  /** JSON boolean: whether a token of the batch is in the rows of a tile; of embeddings, other tiles need not be loaded. */
  needs(tile: number): string;
  /** Of one sequence that is continued (`positions`): keeps what was run last, so that its step runs without being loaded. JSON null. */
  keep(): string;
  /** Runs a step all of which was kept. JSON null. */
  runKept(step: number): string;
  /** The batch is now this token, behind those before; every step has run on these. JSON null. */
  extend(token: number): string;
  /** After the last step. JSON `{pointer, count}`: float64 loss per sequence, in nats. */
  losses(): string;
  /** Of an encoder, after the last step. JSON `{pointer, count}`: float32, an embedding for each sequence. */
  embeddings(pooling: string): string;
  /** After the last step: the most probable token after a sequence; -1 if a logit is not finite. */
  nextToken(sequence: number): number;
  delete(): void;
}

/** A model's predictions and a reference's: two passes of the same tokens, whose heads are loaded tile by tile. */
export interface BoundDivergence {
  /** JSON `{reference, model}`: whether to load the next tile of its head; or the constructor's error. */
  behind(): string;
  /** Compares a portion's logits of the tokens that both heads have loaded. JSON null. */
  run(portion: number): string;
  /** After the last tile of both. JSON `{pointer, count}`: float64, `valuesPerPosition` for each scored position. */
  positions(): string;
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
  /** JSON text: an observer that needs a second pass over the data, or ""; or the constructor's error. */
  secondPass(): string;
  /** Begins a batch. JSON boolean: whether it is needed. */
  begin(layer: string, role: string, shape: string): string;
  /** The batch's next `count` elements. JSON null. */
  update(pointer: number, dtype: string, count: number): string;
  /** Observes the linear-layer inputs of `pass` from now on. JSON null. */
  watch(pass: BoundForwardPass): string;
  /** After all data. JSON boolean: whether another pass is needed. */
  nextPass(): string;
  /** JSON `FoundActivations`. */
  finish(): string;
  delete(): void;
}

/** The algorithms of a config, to be created before the pass's first step. */
export interface BoundCalibration {
  /** JSON null, or the constructor's error. */
  error(): string;
  delete(): void;
}

/** Calibrates the loaded block: parts in order, then `store` for each tensor. */
export interface BoundBlockCalibrator {
  /** JSON `number[][]`: the portions that each part must capture first; or the constructor's error. */
  parts(): string;
  /** Runs a portion and keeps the inputs that a part needs; activations stay. JSON `HeapBytes[]`, the inputs. */
  record(part: number, portion: number): string;
  /** Makes room for those of a portion that another worker recorded. JSON `HeapBytes[]`. */
  expect(part: number, portion: number): string;
  /** Shows the part the inputs recorded last, or (`isOwn` false) those received. Portions come in order. JSON null. */
  show(isOwn: boolean): string;
  /** After all portions of a part: the sums over inputs that a member of the team makes, to be exchanged before
   * `optimize`. JSON `HeapBytes[]`. */
  sums(member: number): string;
  /** Changes weights. JSON boolean: whether the part is done; else the members of the team exchange their `results`, and
   * call it again. */
  optimize(part: number): string;
  /** What a member has made of the part since the last `optimize`. JSON `HeapBytes[]`. */
  results(member: number): string;
  /** Quantizes a tensor and replaces it by the decoded values. JSON `StoredTile`. */
  store(slot: number): string;
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
  /** JSON null, or the constructor's error. */
  error(): string;
  /** Rotates and quantizes the tile loaded last; the pass continues with the decoded values. JSON `StoredTile`. */
  store(): string;
  delete(): void;
}

/** Estimates the effect of quantizing one layer of the loaded block. */
export interface BoundSensitivityProbe {
  /** Runs a portion and records the inputs of the block's layers. JSON null. */
  run(portion: number): string;
  /** After all portions. JSON number: relative squared error of the residual stream with only this layer quantized. */
  measure(slot: number, work: BoundWork, task: number): string;
  delete(): void;
}

export interface ForwardModule {
  /** `config`: config.json. `options`: JSON `{activations, lengths, keepsStates?, scored?, positions?}`. `tokens`: int32, sequences of `lengths`. */
  ForwardPass: new (
    config: string,
    options: string,
    tokens: number,
    count: number,
  ) => BoundForwardPass;
  Divergence: new (reference: BoundForwardPass, model: BoundForwardPass) => BoundDivergence;
  /** `requests`: the plan's. */
  ActivationObserver: new (
    requests: string,
  ) => BoundActivationObserver;
  /** `config`: the quantization config. One of `members` that are shown the same inputs and divide the work. */
  Calibration: new (
    pass: BoundForwardPass,
    config: string,
    member: number,
    members: number,
  ) => BoundCalibration;
  /** `work`: the plan's; `tasks`: JSON `[{slot, task}]`. */
  BlockCalibrator: new (
    calibration: BoundCalibration,
    work: BoundWork,
    tasks: string,
  ) => BoundBlockCalibrator;
  EmbeddingRotation: new (
    calibration: BoundCalibration,
    slot: number,
    work: BoundWork,
    task: number,
  ) => BoundEmbeddingRotation;
  SensitivityProbe: new (pass: BoundForwardPass) => BoundSensitivityProbe;
}
