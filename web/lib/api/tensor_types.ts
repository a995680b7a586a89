/// <reference lib="esnext.disposable" preserve="true" />
// Tensors in memory: specs and results.

/** How one tensor is quantized, in Quark's terms (config keys keep their snake_case). */
export interface QuantizationSpec {
  /** Number format: `int4`, `uint8`, `fp8_e4m3`, `mx`, `bfloat16` and others (guide "Number formats"). */
  dtype: string;
  /** Elements that share a scale: all, a channel, `group_size` or `block_size` elements. Default `per_tensor`. */
  qscheme?: 'per_tensor' | 'per_channel' | 'per_group' | 'per_block' | null;
  /** Axis of the channels (per_channel) or of the groups (per_group). Negative values count from the end. */
  ch_axis?: number | null;
  /** Elements per group, for per_group. */
  group_size?: number | null;
  /** Whether zero points are omitted. Integers only; minifloats have none. */
  symmetric?: boolean | null;
  /** For activations: the runtime computes scales per batch. False: scales are stored, from calibration. */
  is_dynamic?: boolean | null;
  /** `round` is floor(v + 0.5), `half_away` rounds ties away from zero. Floats always take half_even. */
  round_method?: 'half_even' | 'round' | 'floor' | 'half_away' | null;
  /** Type that scales are rounded to. `float`: float32; `pof2`: powers of two. Default: as stored in the output. */
  scale_type?: 'float' | 'pof2' | 'float32' | 'float16' | 'bfloat16' | 'float8_e5m3' | 'float8_e8m0fnu' | null;
  /** Storage of scales: powers of two (e8m0), fp8 under a float32 scale (e4m3), unsigned fp8 (e5m3). */
  scale_format?: 'float32' | 'e8m0' | 'e4m3' | 'e5m3' | null;
  /** How an e8m0 scale is rounded to a power of two. Default even. */
  scale_calculation_mode?: 'even' | 'floor' | 'ceil' | null;
  /** For per_block: rows and columns. */
  block_size?: [number, number] | null;
  /** For dtype mx: element dtype of its blocks. */
  mx_element_dtype?: string | null;
  /** For dtype minifloat: 1 to 7. */
  exponent_bits?: number;
  /** For dtype minifloat: 0 to 10. */
  mantissa_bits?: number;
  /** Type of zero points. Default int32. */
  zero_point_type?: 'int32' | 'float32';
  /**
   * Sign of the scales of symmetric integers. `signed`: the value of largest magnitude of each scale is the lowest code,
   * at the same size. Default `positive`, as in AMD Quark.
   */
  scale_sign?: 'positive' | 'signed';
  /**
   * Whether scales of integers are fit to the codes that they give, by least squares, and these to them, in turns. With
   * calibration data, errors count by the mean square of their input channel. Default false, as in AMD Quark.
   */
  scale_refit?: boolean;
  /** How the range is found, such as `PerGroupMinMaxObserver`. Default: min-max for the scheme. */
  observer_cls?: string | null;
  /** Kept without effect: training-aware quantization. */
  qat_spec?: object | null;
  /** Accepted and ignored. */
  enable_buffer_reuse?: boolean | null;
  /** Accepted and ignored. */
  max_input_numel?: number | null;
  /** Second of two stages: quantizes the first stage's scales instead of its values. */
  is_scale_quant?: boolean;
  /** Deviations from Quark's arithmetic for scales, floors and quantized values, in plans of other dialects. */
  grid?: Record<string, string | number | boolean>;
  /** Options of the observer, such as `percentile`, `bins`, `candidates`. */
  observer_options?: Record<string, string | number>;
}

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
