/**
 * The part of the WebAssembly module that runs a model on tokens. A class has the methods of one stage; its constructor
 * takes what the stage before it made, so that they cannot be called out of order. Stages may be deleted in any order.
 */
import type { BoundWork } from './bound_work.js';

/** A batch of sequences on its way through a model: steps of the plan in order, tensors of a step in order. */
export interface BoundForwardPass {
  /** JSON number; ask for it first, it has the error of the constructor. */
  portions(): string;
  /** The next tensor of a step. JSON null. */
  begin(step: number, slot: number, work: BoundWork, task: number): string;
  /** JSON `TileRead[]`. */
  reads(tile: number): string;
  /** Decodes the tile whose bytes were read last. JSON null. */
  load(tile: number): string;
  /** Streamed tensors: after each load; others: once all tensors of the step are loaded. For every portion. JSON null. */
  run(portion: number): string;
  /** After the last step. JSON `{pointer, count}`: float64 loss of each sequence, in nats. */
  losses(): string;
  /** After the last step: the token with the largest logit at a sequence's last position; -1 when a logit is not finite. */
  nextToken(sequence: number): number;
  delete(): void;
}

/** What was found for the requests of a plan, as the next plan takes it. */
export interface FoundActivations {
  found: object[];
  /** Batches of layers that asked for none. */
  unused: number;
}

/** The observers that a plan asks for, shown batches of activations or what a pass computes. */
export interface BoundActivationObserver {
  /** JSON text: which of them asks for the data to come twice, "" when none does; or the error of the constructor. */
  secondPass(): string;
  /** A batch follows. JSON boolean: whether it is of use. */
  begin(layer: string, role: string, shape: string): string;
  /** Its next `count` elements. JSON null. */
  update(pointer: number, dtype: string, count: number): string;
  /** Sees the inputs of linear layers of `pass` from now on. JSON null. */
  watch(pass: BoundForwardPass): string;
  /** After all data. JSON boolean: whether it has to come once more, in another pass. */
  nextPass(): string;
  /** JSON `FoundActivations`. */
  finish(): string;
  delete(): void;
}

/** What the algorithms of a config do to the blocks of a model, before its first step. */
export interface BoundCalibration {
  /** JSON null, or the error of the constructor. */
  error(): string;
  delete(): void;
}

/** The block that is loaded, while it is calibrated: parts in order, then `store` for each tensor. */
export interface BoundBlockCalibrator {
  /** JSON `boolean[]`: for each part of the work, whether it captures inputs first; or the error of the constructor. */
  parts(): string;
  /** Shows a part what the block computes, for every portion; activations stay. JSON null. */
  capture(part: number, portion: number): string;
  /** Changes weights. JSON null. */
  optimize(part: number): string;
  /** Quantizes a tensor, which becomes what will be read back. JSON `StoredTile`. */
  store(slot: number): string;
  delete(): void;
}

/** Embedding, final norm or head, where a rotation of the model changes them. */
export interface BoundEmbeddingRotation {
  /** JSON null, or the error of the constructor. */
  error(): string;
  /** The tile that was loaded last, rotated and quantized; the pass goes on with what will be read back. JSON
   * `StoredTile`. */
  store(): string;
  delete(): void;
}

/** What quantizing a layer of the block that is loaded would do to the model. */
export interface BoundSensitivityProbe {
  /** Runs a portion, and sees what the layers of the block read. JSON null. */
  run(portion: number): string;
  /** After every portion: relative squared error of the residual stream if this layer alone were stored as the task says.
   * JSON number. */
  measure(slot: number, work: BoundWork, task: number): string;
  delete(): void;
}

export interface ForwardModule {
  /** `config`: text of config.json. `options`: JSON `{activations}`. `tokens`: int32, `count` of them in whole sequences of
   * `length`. */
  ForwardPass: new (
    config: string,
    options: string,
    tokens: number,
    count: number,
    length: number,
  ) => BoundForwardPass;
  /** `requests`: those of the plan. */
  ActivationObserver: new (
    requests: string,
  ) => BoundActivationObserver;
  /** `config`: text of the quantization config. */
  Calibration: new (
    pass: BoundForwardPass,
    config: string,
  ) => BoundCalibration;
  /** `work`: of the plan; `tasks`: JSON `[{slot, task}]`. */
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
