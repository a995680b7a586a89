/** The public types of wasmquant. Names and shapes follow the design contract; every member is documented. */

import type { AutoConfig, AutoConfigOptions } from './auto_config.js';

/**
 * Config dialects, all of them read and written: AMD Quark's own, its Brevitas extension, IBM aihwkit, and the
 * `quantization_config` blocks of compressed-tensors, GPTQ and AWQ models. Blocks of fp8 models are recognised as well.
 */
export type Dialect = 'quark' | 'brevitas' | 'aihwkit' | 'compressed-tensors' | 'gptq' | 'awq';
/** File formats that can be opened. */
export type InputFormat = 'safetensors' | 'gguf' | 'onnx' | 'npy';
/** Formats that can be written. */
export type OutputFormat = 'compressed-tensors' | 'quark' | 'awq' | 'gptq' | 'gguf' | 'onnx' | 'fake-quantized';

/** Random access to bytes. `read` resolves to exactly `length` bytes from `offset` (both in bytes) or rejects. */
export interface ByteSource {
  /** Size in bytes. */
  size: number;
  /** File name, if it has one. */
  name?: string;
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** An open `fs.promises.FileHandle` of Node. It stays the caller's and must be open as long as the model. */
export interface NodeFileHandle {
  readonly fd: number;
  stat(): Promise<{ size: number }>;
}

/** What a model can be opened from. A string is a path in Node (file, folder or index file) and a URL elsewhere. */
export type Source =
  | File
  | Blob
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | Uint8Array
  | ArrayBuffer
  | URL
  | Response
  | string
  | ByteSource
  | NodeFileHandle;

/** Where output goes. A stream or file handle takes a single file; a folder takes several. */
export type Target =
  | WritableStream<Uint8Array>
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | string
  | { write(name: string): Promise<WritableStream<Uint8Array>> };

/** One problem or remark. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'note';
  /** Kebab-case code, such as `key-unknown`. */
  code: string;
  /** JSON pointer into the config, or a tensor name. */
  where: string;
  message: string;
  /** What to do. */
  hint?: string;
}

/** Options of {@link createQuantizer}. */
export interface QuantizerOptions {
  /** Workers; default min(hardwareConcurrency, 8); 0 = run in this thread. */
  threads?: number;
  /** Where wasmquant.wasm is; default beside the library. */
  wasmUrl?: string | URL;
  /** A compiled module, for hosts that cannot compile at run time. */
  wasmModule?: WebAssembly.Module;
  /** Where the worker script (`wasmquant/worker`) is, for bundlers that move it; default beside the library. */
  workerUrl?: string | URL;
  /** Memory for all workers together, in bytes; default 512 MiB. */
  memoryBudgetBytes?: number;
}

/** Progress of a run. `bytesDone` never falls. */
export interface Progress {
  phase: 'read' | 'calibrate' | 'optimize' | 'quantize' | 'write' | 'evaluate';
  /** Tensor that was worked on last. */
  tensor?: string;
  /** Tensors finished. */
  index: number;
  /** Tensors in all. */
  count: number;
  /** Input bytes finished. */
  bytesDone: number;
  bytesTotal: number;
}

/** How one tensor is quantized, in Quark's words (config keys keep their snake_case). */
export interface QuantizationSpec {
  dtype: string;
  qscheme?: 'per_tensor' | 'per_channel' | 'per_group' | 'per_block' | null;
  ch_axis?: number | null;
  group_size?: number | null;
  symmetric?: boolean | null;
  is_dynamic?: boolean | null;
  /** `round` is floor(v + 0.5), `half_away` rounds ties away from zero. Floats always take half_even. */
  round_method?: 'half_even' | 'round' | 'floor' | 'half_away' | null;
  scale_type?: 'float' | 'pof2' | 'float32' | 'float16' | 'bfloat16' | 'float8_e5m3' | 'float8_e8m0fnu' | null;
  /** How scales of floats are stored: powers of two (e8m0), fp8 under a float32 scale (e4m3), unsigned fp8 (e5m3). */
  scale_format?: 'float32' | 'e8m0' | 'e4m3' | 'e5m3' | null;
  /** Which power of two an e8m0 scale is. Default even. */
  scale_calculation_mode?: 'even' | 'floor' | 'ceil' | null;
  /** Of per_block: rows and columns. */
  block_size?: [number, number] | null;
  /** Of dtype mx: what its blocks hold. */
  mx_element_dtype?: string | null;
  /** Of dtype minifloat: 1 to 7. */
  exponent_bits?: number;
  /** Of dtype minifloat: 0 to 10. */
  mantissa_bits?: number;
  zero_point_type?: 'int32' | 'float32';
  observer_cls?: string | null;
  /** Kept, without effect: training-aware quantization, Quark's own memory use. */
  qat_spec?: object | null;
  enable_buffer_reuse?: boolean | null;
  max_input_numel?: number | null;
  /** Second of two stages: quantizes the scales of the first instead of its codes. */
  is_scale_quant?: boolean;
  /** How scales, floors and codes are computed where that is not Quark's way, as plans of other dialects have it. */
  grid?: Record<string, string | number | boolean>;
  /** Choices of the observer, such as `percentile`, `bins`, `candidates`. */
  observer_options?: Record<string, string | number>;
}

/** A tensor in memory. `Uint16Array` holds the bits of F16 or BF16 values and needs `dtype`. */
export interface TensorInput {
  data: Float32Array | Uint16Array;
  /** Default F32. */
  dtype?: 'F32' | 'F16' | 'BF16';
  /** C order. */
  shape: number[];
}

/** Codes of a quantized tensor, one per element, unpacked. */
export interface QuantizedTensor {
  spec: QuantizationSpec | QuantizationSpec[];
  shape: number[];
  codes: Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array;
  /** In the order of `scaleShape`. */
  scale: Float32Array;
  /** `[]` per tensor, `[channels]`, or `[rows, groups per row]`. */
  scaleShape: number[];
  /** Null for symmetric-less dtypes (floats); zeros for symmetric integers. */
  zeroPoint: Int32Array | Float32Array | null;
  /** scale_format e8m0 and block dtypes (mx6, mx9, bfp16): exponent + 127 of each scale, in the order of `scaleShape`. */
  sharedExponents?: Uint8Array;
  /**
   * mx6 and mx9: 1 where both elements of a pair lie below their block's exponent, so that their step is half of `scale`;
   * else 0. Shape of the tensor, with ceil(n / 2) in place of the n elements of the blocks' axis.
   */
  pairShifts?: Uint8Array;
  /**
   * scale_format e4m3 (NVFP4): the float32 scale of the tensor; `scale` is the product of it and the fp8 block scales.
   * Two stages: the scale of the first (progressive), or that of the scales (is_scale_quant), which `scale` contains.
   */
  secondScale?: number;
}

/** Result of an observer. Arrays are in the order of the scale shape. */
export interface ObserverResult {
  scale: Float32Array;
  zeroPoint: Int32Array | Float32Array | null;
  min: Float32Array;
  max: Float32Array;
}

/**
 * Scale and zero point of tensors that arrive one after another. Observers with two passes see all of them, then
 * `nextPass()`, then all of them again in the same order.
 */
export interface Observer extends Disposable {
  /** 2 for observers by histogram and by squared error, which need to know the range before they count. */
  readonly passes: 1 | 2;
  /** The next tensor of this pass. */
  update(tensor: TensorInput): void;
  /** Error: state-invalid when there is no further pass. */
  nextPass(): void;
  /** Error: state-invalid when a pass is missing. */
  finish(): ObserverResult;
  /** Adds what another observer of the same spec has seen in this pass; before `nextPass()` merge in both directions. */
  merge(other: Observer): void;
  reset(): void;
}

/**
 * What algorithms that look at activations see: token ids, `[sequences, length]`, from the model's own tokenizer; 32 × 256
 * tokens of ordinary text are plenty. The model must be of a kind that `evaluate` knows.
 */
export interface TokenCalibration {
  /** Sequences of one length, an opened safetensors file that holds them (I64, I32 or U16), or text. */
  tokens: TokenInput | Model | TextInput;
  /** Tensor of that file; default `input_ids`, `tokens`, or the only one. */
  tensor?: string;
}

/** Values that went into a layer, or came out of it. */
export interface ActivationBatch extends TensorInput {
  /** Name of the layer: that of its weight, without `.weight`. */
  layer: string;
  role: 'input' | 'output';
}

/**
 * Data to calibrate with.
 * - Token ids, for smoothquant, awq and gptq; unless smoothquant or awq change them, also for static inputs.
 * - Activations, for static inputs and outputs (`input_tensors`, `output_tensors` without `is_dynamic`) and for observers
 *   with `weighted`: an iterable of batches, in any order of layers. Observers that see data twice iterate twice.
 * - A safetensors file of either, opened or not: `input_ids`, or activations as `<layer>.input` and `<layer>.output`, in
 *   several batches `<layer>.input.0`, `<layer>.input.1` ...
 */
export type Calibration =
  | TokenCalibration
  | Iterable<ActivationBatch>
  | AsyncIterable<ActivationBatch>
  | Model
  | Source;

/** A checked config. */
export interface QuantConfig {
  /** What the config is written in. */
  dialect: Dialect | 'fp8';
  /** The config in that dialect, with current key names; dialects other than Quark's also with every standard value. */
  config: Record<string, unknown>;
  /** Warnings and notes; errors throw instead. */
  diagnostics: Diagnostic[];
}

/** A ready-made config. */
export interface Preset {
  name: string;
  title: string;
  description: string;
  config: Record<string, unknown>;
}

/** One tensor of an opened model. Offsets are absolute bytes of its file, end exclusive. */
export interface TensorInfo {
  name: string;
  /** Storage dtype name as safetensors spells it. */
  dtype: string;
  shape: number[];
  bytes: number;
  file: string;
  begin: number;
  end: number;
  /** Module the tensor belongs to: the name without `.weight` or `.bias`. */
  layer: string;
  /** Inferred class: `Linear`, `Embedding`, `Conv1d`, `Conv2d`, `Norm`, of ONNX also `ConvTranspose2d`, `LSTM` ...; `` when unknown. */
  layerType: string;
}

/** An opened model. Close it (or `await using`) to release files. */
export interface Model extends AsyncDisposable {
  format: InputFormat;
  /** Every file of the model, in order. */
  files: { name: string; bytes: number }[];
  tensors: TensorInfo[];
  metadata: Record<string, string>;
  /** config.json beside the weights, when there is one. */
  config: Record<string, unknown> | null;
  /** Remarks on the files, such as tensors that an index does not mention. */
  diagnostics: Diagnostic[];
  /** A small file beside the weights, such as `tokenizer.json`; null when there is none of that name. */
  companion(name: string): Promise<Uint8Array | null>;
  close(): Promise<void>;
}

/** Why a tensor got its spec. */
export interface Reason {
  rule:
    | 'excluded'
    | 'layer-name'
    | 'layer-glob'
    | 'layer-type'
    | 'global'
    | 'not-a-weight'
    | 'not-quantizable'
    | 'no-config';
  /** JSON pointer of the deciding key. */
  where: string;
  /** A sentence. */
  text: string;
}

/** What happens to one tensor. */
export interface PlannedTensor {
  name: string;
  layer: string;
  layerType: string;
  dtype: string;
  shape: number[];
  action: 'quantize' | 'cast' | 'copy';
  spec: QuantizationSpec | null;
  /** The list that `spec` is part of, where two stages make the codes. */
  stages?: QuantizationSpec[];
  reason: Reason;
  bytesBefore: number;
  bytesAfter: number;
  outputs: { name: string; dtype: string; shape: number[]; bytes: number; file: string }[];
}

/** The whole outcome of a run, known before any weight is read. */
export interface Plan {
  format: OutputFormat;
  tensors: PlannedTensor[];
  files: { name: string; bytes: number }[];
  totals: Totals;
  diagnostics: Diagnostic[];
  /** The block that config.json gets; null when the format needs none. */
  quantizationConfig: Record<string, unknown> | null;
}

export interface Totals {
  tensors: number;
  quantized: number;
  bytesBefore: number;
  bytesAfter: number;
  /** Bits per element of the quantized weights, with scales and zero points. */
  bitsPerWeight: number;
}

/** Error of a tensor against its original. */
export interface TensorError {
  /** 10·log10(Σx² / Σ(x−y)²); Infinity when equal. */
  sqnrDb: number;
  mse: number;
  maxAbs: number;
  /** Cosine of the angle between x and y. */
  cosine: number;
}

/** One tensor of a report. */
export interface TensorReport extends Omit<PlannedTensor, 'outputs'> {
  /** Null for tensors that were copied. */
  error: TensorError | null;
}

/** What a run did. */
export interface Report {
  format: OutputFormat | null;
  tensors: TensorReport[];
  files: { name: string; bytes: number }[];
  totals: Totals;
  diagnostics: Diagnostic[];
  /** Wall time in milliseconds. */
  durationMs: number;
  threads: number;
}

/** Of ONNX outputs. Which operators read the weights follows from the config, see the README. */
export interface OnnxOptions {
  /** DequantizeLinear before every quantized weight (QDQ), no MatMulNBits and no integer operators. Default false. */
  qdq?: boolean;
  /** What MatMulNBits may compute with: 1 float32, 2 float16, 3 bfloat16, 4 int8; default 0, which leaves it to the runtime. */
  accuracyLevel?: 0 | 1 | 2 | 3 | 4;
  /** Tensors of 1 KiB and more in a file of their own, `<model's file>_data`. Default: when the model would exceed 1.5 GiB. */
  externalData?: boolean;
}

export interface PlanOptions {
  /** Default: that of GGUF and ONNX models, `gguf` for its recipes, else `compressed-tensors`. */
  format?: OutputFormat;
  onnx?: OnnxOptions;
}

export interface QuantizeModelOptions extends PlanOptions {
  target: Target;
  /**
   * For configs with smoothquant, awq or gptq, which see the activations of a llama-kind model on tokens, and for scales
   * of static inputs and outputs, which are left out without it.
   */
  calibration?: Calibration;
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** Paths and folder handles: replace existing output. Default false. */
  overwrite?: boolean;
}

/** Token ids, C order: `[sequences, length]`, or `[length]` for one sequence. */
export interface TokenInput {
  data: Int32Array | Uint32Array | Uint16Array | BigInt64Array | number[];
  shape: number[];
}

/** Anything that turns text into token ids: a tokenizer of `@huggingface/tokenizers`, of transformers.js, or your own. */
export interface Tokenizer {
  encode(text: string, options?: { add_special_tokens?: boolean }): number[] | { ids: number[] };
}

/** Text, cut into sequences that each begin with what the tokenizer puts in front of a text. */
export interface TextInput {
  text: string | readonly string[];
  tokenizer: Tokenizer;
  /** Tokens of a sequence; default 256, or what the model allows if that is less. */
  length?: number;
  /** At most so many sequences; default: all that the text fills. */
  sequences?: number;
}

export interface EvaluateOptions {
  /** Sequences of one length, an opened safetensors file that holds them (I64, I32 or U16), or text. */
  tokens: TokenInput | Model | TextInput;
  /** Tensor of that file; default `input_ids`, `tokens`, or the only one. */
  tensor?: string;
  /** Bytes of text per token on average. Default: counted with the model's tokenizer.json. */
  bytesPerToken?: number;
  /** `int8`: what linear layers multiply is quantized per token first, as W8A8 runtimes do. Default `float32`. */
  activations?: 'float32' | 'int8';
  signal?: AbortSignal;
  /** Every batch of sequences goes through all tensors; `count` and `bytesTotal` are those of all batches. */
  onProgress?: (progress: Progress) => void;
}

/** How well a model predicts. Every token but the first of its sequence is predicted from those before it. */
export interface Evaluation {
  /** Mean of -log2 p per byte of text; null when the bytes are not known. */
  bitsPerByte: number | null;
  /** Mean of -log2 p per predicted token. */
  bitsPerToken: number;
  /** 2 to the bits per token. */
  perplexity: number;
  /** Predicted tokens. */
  tokens: number;
  /** Bytes of text they stand for; special tokens stand for none. */
  bytes: number | null;
  sequences: number;
  /** Tokens of a sequence. */
  length: number;
  /** Sum of -ln p of each sequence, for standard errors of differences between models. */
  sequenceLosses: number[];
  /** Wall time in milliseconds. */
  durationMs: number;
  threads: number;
}

/** The entry point; see {@link createQuantizer}. */
export interface Quantizer extends AsyncDisposable {
  version: { library: string; compiler: string };
  presets(): Preset[];
  /** All problems at once; never throws. */
  checkConfig(config: string | object, options?: { dialect?: Dialect | 'auto' }): Diagnostic[];
  /** @throws QuantizationError `config-invalid` with `diagnostics`. */
  parseConfig(config: string | object, options?: { dialect?: Dialect | 'auto' }): QuantConfig;
  /**
   * A config in the words of another dialect. `losses` says what these cannot say, or say with other numbers; each is at its
   * place in `config`. @throws QuantizationError `config-invalid` when nothing of it can be said there.
   */
  convertConfig(config: string | object, to: Dialect): { config: object; losses: Diagnostic[] };
  /** One tensor, in this thread. Codes are those a file would hold (zero point added before rounding). */
  /** A list of two specs is two stages: the second quantizes the codes of the first, or with is_scale_quant its scales. */
  quantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): QuantizedTensor;
  dequantize(quantized: QuantizedTensor): Float32Array;
  /** Quantize and dequantize, zero point added after rounding, as training-time fake quantization does. */
  fakeQuantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): Float32Array;
  createObserver(spec: QuantizationSpec): Observer;
  open(source: Source | Source[], options?: { format?: InputFormat }): Promise<Model>;
  /** `config` is a config, its JSON text, or a preset name. */
  plan(model: Model, config: string | object, options?: PlanOptions): Plan;
  quantizeModel(model: Model, config: string | object, options: QuantizeModelOptions): Promise<Report>;
  compare(
    reference: Model,
    quantized: Model,
    options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
  ): Promise<Report>;
  /**
   * Perplexity and bits per byte of a llama-kind model (llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text), quantized
   * or not, by a float32 forward pass in the workers. The result is the same for any number of threads.
   * @throws QuantizationError `not-implemented` for other families, `argument-invalid` for tokens that do not fit the
   * model, `tensor-missing`, `shape-mismatch`, `memory-budget`
   */
  evaluate(model: Model, options: EvaluateOptions): Promise<Evaluation>;
  /**
   * Which layer of a llama-kind model gets which spec so that a budget is spent best: an ordinary config, and the table
   * that led to it. Every linear layer of the transformer blocks is measured with every candidate. @throws
   * QuantizationError argument-invalid (no budget, one that is too small), not-implemented for other kinds of models.
   */
  autoConfig(model: Model, options: AutoConfigOptions): Promise<AutoConfig>;
}
