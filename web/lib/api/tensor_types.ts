/// <reference lib="esnext.disposable" preserve="true" />
// Tensors in memory: specs and results.

import type { QuantizationSpec } from '../generated/config_types.js';

export type { QuantizationSpec } from '../generated/config_types.js';

/** A tensor in memory. `Uint16Array` contains the bits of F16 or BF16 values and needs `dtype`. */
export interface TensorInput {
  /** Values in C order. `Uint16Array`: bit patterns of F16 or BF16. */
  data: Float32Array | Uint16Array;
  /** Default F32. */
  dtype?: 'F32' | 'F16' | 'BF16';
  /** C order. */
  shape: number[];
}

/** Codes of a quantized tensor, one per element, unpacked. */
export interface QuantizedTensor {
  /** The spec with all defaults; a list for two stages. */
  spec: QuantizationSpec | QuantizationSpec[];
  /** Shape of the tensor, and of `codes`. */
  shape: number[];
  /** Quantized values in C order, one per element: integers, or bit patterns of minifloats. */
  codes: Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array;
  /** In the order of `scaleShape`. */
  scale: Float32Array;
  /** `[]` per tensor, `[channels]`, or `[rows, groups per row]`. */
  scaleShape: number[];
  /** Null for floats; zeros for symmetric integers. */
  zeroPoint: Int32Array | Float32Array | null;
  /** scale_format e8m0 and block dtypes (mx6, mx9, bfp16): exponent + 127 of each scale, as `scaleShape`. */
  sharedExponents?: Uint8Array;
  /**
   * mx6 and mx9: 1 if both elements of a pair are below their block's exponent, which halves their step, else 0. Shape
   * of the tensor, with ceil(n / 2) instead of n elements along the blocks' axis.
   */
  pairShifts?: Uint8Array;
  /**
   * scale_format e4m3 (NVFP4): the tensor's float32 scale; `scale` is its product with the fp8 block scales. Two
   * stages: the first stage's scale (progressive), or the scale of scales (is_scale_quant), included in `scale`.
   */
  secondScale?: number;
}

/** Result of an observer. Arrays are in scale-shape order. */
export interface ObserverResult {
  /** Scales, all positive. */
  scale: Float32Array;
  /** Zero points; null for minifloats. */
  zeroPoint: Int32Array | Float32Array | null;
  /** Lower ends of the chosen ranges; above `max` if there was no data. */
  min: Float32Array;
  /** Upper ends of the chosen ranges. */
  max: Float32Array;
}

/** Where the data of an {@link Observer.update} belongs. */
export interface ObservedPart {
  /** Number of the batch, from 0, in the order of calibration. Numbers may come in any order, and be left out. */
  batch: number;
  /** Shape of the whole batch, if the tensor is a part of it. Default: the tensor's. */
  shape?: number[];
  /** The part's first element in the flat batch. Default 0. Parts may come in any order and must not overlap. */
  offset?: number;
}

/**
 * Scale and zero point of tensors that arrive in sequence. Observers with two passes see all of them, then
 * `nextPass()`, then all again in the same order.
 */
export interface Observer extends Disposable {
  /** 2 for histogram and squared-error observers, which need the range first. */
  readonly passes: 1 | 2;
  /**
   * The next batch of this pass; with `part` the batch, or the part of a batch, that it names. Either all batches of
   * observers that are merged are named, or none. @throws QuantizationError `argument-invalid`, `shape-mismatch`,
   * `value-not-finite`; the observer stays as it was
   */
  update(tensor: TensorInput, part?: ObservedPart): void;
  /** Error: state-invalid if there is no further pass. */
  nextPass(): void;
  /** Error: state-invalid if a pass is missing, or an observer that needs whole batches saw only parts of one. */
  finish(): ObserverResult;
  /**
   * Adds what another observer of the same spec saw in this pass, so that the result is that of one observer that saw
   * all. Batches without a number count in the order in which they arrived at any observer of this quantizer. Before
   * `nextPass()` merge in both directions; then each observer sees its own batches again, or one of them all: its own,
   * then the others'. Error: shape-mismatch if the batches have different numbers of scales.
   */
  merge(other: Observer): void;
  /** Returns to the state before the first tensor. */
  reset(): void;
}
