/** The public types of wasmquant. Names and shapes follow the design contract; every member is documented. */

import type { AutoConfig, AutoConfigOptions } from './auto_config.js';
import type {
  Calibration,
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
} from './calibration_types.js';
import type { Distribution, DistributionOptions } from './distribution_types.js';
import type { OutputFormat } from './output_formats.js';
import type { Plan, Report, ShardPart, TensorReport } from './plan_types.js';
import type { Observer, QuantizationSpec, QuantizedTensor, TensorInput } from './tensor_types.js';

export type * from './calibration_types.js';
export type * from './distribution_types.js';
export type * from './output_formats.js';
export type * from './plan_types.js';
export type * from './tensor_types.js';

/**
 * Config dialects, all of them read and written: AMD Quark's own, its Brevitas extension, IBM aihwkit, and the
 * `quantization_config` blocks of compressed-tensors, GPTQ and AWQ models. Blocks of fp8 models are recognised as well.
 */
export type Dialect = 'quark' | 'brevitas' | 'aihwkit' | 'compressed-tensors' | 'gptq' | 'awq';
/** File formats that can be opened. */
export type InputFormat = 'safetensors' | 'gguf' | 'onnx' | 'npy';

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
  /** Memory for all workers together, in bytes, at least 64 MiB; default 512 MiB. It bounds what a run adds to the bare host. */
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
  /** Of `quantizeModel`: memory of the engine, here and in all workers, in bytes. Output that waits to be written comes on top. */
  memoryBytes?: number;
}

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
  /** config.json beside the weights; null when there is none. As in Python, `Infinity` and `NaN` are numbers, and of members of one name the last counts. */
  config: Record<string, unknown> | null;
  /** Remarks on the files, such as tensors that an index does not mention. */
  diagnostics: Diagnostic[];
  /** A small file beside the weights, such as `tokenizer.json`; null when there is none of that name. */
  companion(name: string): Promise<Uint8Array | null>;
  close(): Promise<void>;
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

/** Of GGUF outputs. */
export interface GgufOptions {
  /**
   * Bytes of an importance matrix, as llama-imatrix or `importanceMatrix` made it (GGUF or .dat): scales are chosen for the
   * least error where inputs are large, as llama-quantize --imatrix does. Not together with `calibration`.
   */
  imatrix?: Uint8Array;
  /** What it is called, for the file's metadata. */
  imatrixName?: string;
  /**
   * Several files, NAME-00001-of-00003.gguf and so on, each with at most so many bytes of tensors (but at least one tensor).
   * llama.cpp opens the first. Default: one file.
   */
  shardBytes?: number;
}

export interface PlanOptions {
  /** Default: that of GGUF and ONNX models, `gguf` for its recipes, else `compressed-tensors`. */
  format?: OutputFormat;
  onnx?: OnnxOptions;
  gguf?: GgufOptions;
  /** Quantizes vision and audio towers and projectors, too, which presets leave alone. Default false. */
  includeTowers?: boolean;
  /**
   * Quantizes experts of compressed-tensors outputs, too, under per-expert names that vLLM reads; transformers cannot load
   * such files. Default false.
   */
  includeExperts?: boolean;
  /** As it will be with calibration: without, static inputs and outputs are left out. Runs see for themselves. */
  calibrated?: boolean;
}

/** A finished run of the same model into the same format. */
export interface FormerRun {
  config: string | object;
  /** What it wrote, opened. */
  output: Model;
  report: Report;
}

export interface QuantizeModelOptions extends PlanOptions {
  target: Target;
  /**
   * For configs with algorithms, most of which see the activations of a llama-kind model on tokens, and for scales
   * of static inputs and outputs, which are left out without it. For GGUF outputs: the importance of columns.
   */
  calibration?: Calibration;
  /**
   * Quantized tensors that both configs treat the same are copied from that output, with the errors of its report; only the
   * others are quantized. The bytes are those of a whole run. Not with calibrated configs, which go through the whole model.
   * @throws QuantizationError `argument-invalid` when the output is not what that config makes of this model
   */
  reuse?: FormerRun;
  /**
   * Writes one part of the output shards, under the names that the whole run gives them, into a folder (a path) that other
   * machines may write theirs to; the parts need not know of each other. When all are there, `mergeShards` makes a model of
   * them, with the bytes of the whole run. Safetensors formats only, and no algorithms that go through the whole model.
   * @throws QuantizationError `argument-invalid`, `format-unsupported`
   */
  shards?: ShardPart;
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** Paths and folder handles: replace existing output. Default false. */
  overwrite?: boolean;
  /**
   * Folders by path, in Node: files that are complete when the run is interrupted are kept, in a partial folder, and a
   * later run of the same work with this option goes on from there, with the same bytes and the same report. Calibrated
   * configs start anew. Default false.
   * @throws QuantizationError `target-invalid` when an interrupted run there was of another config, input or version,
   * `argument-invalid` for other targets
   */
  resume?: boolean;
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
  /**
   * Makes a model of a folder (a path, in Node) that all parts of a run (`quantizeModel` with `shards`) were written to: the
   * files, with the bytes, of a whole run. Neither the original model nor the config is needed. Resolves to the report of the
   * whole. `overwrite`: small files that stand there already, such as a tokenizer.json, are replaced. Default false.
   * @throws QuantizationError `source-invalid` (no parts, parts or shards missing), `file-truncated`, `file-invalid` (parts of
   * different plans, another header), `target-exists`, and nothing is moved; `write-failed`; `target-invalid` outside Node
   */
  mergeShards(folder: string, options?: { overwrite?: boolean }): Promise<Report>;
  compare(
    reference: Model,
    quantized: Model,
    options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
  ): Promise<Report>;
  /**
   * Where the values of one weight lie, in the model and in what a run made of it, and the error of each channel.
   * @throws QuantizationError `tensor-missing` where the two have no such weight in common
   */
  distribution(
    reference: Model,
    quantized: Model,
    tensor: string,
    options?: DistributionOptions,
  ): Promise<Distribution>;
  /**
   * What a config would do to some tensors: quantized as in a run, by rounding alone where it has calibrated algorithms;
   * nothing is written. @throws QuantizationError those of `plan`, `tensor-missing`
   */
  trial(
    model: Model,
    config: string | object,
    tensors: readonly string[],
    options?: PlanOptions & { signal?: AbortSignal },
  ): Promise<TensorReport[]>;
  /**
   * Perplexity and bits per byte of a llama-kind model (llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text), quantized
   * or not, by a float32 forward pass in the workers. The result is the same for any number of threads.
   * @throws QuantizationError `not-implemented` for other families, `argument-invalid` for tokens that do not fit the
   * model, `tensor-missing`, `shape-mismatch`, `memory-budget`
   */
  evaluate(model: Model, options: EvaluateOptions): Promise<Evaluation>;
  /**
   * What a llama-kind model, quantized or not, goes on with after a prompt: greedy, for a look at it, not for speed, since
   * each token goes through the whole model. The same tokens for any number of threads.
   * @throws QuantizationError as `evaluate`
   */
  generate(model: Model, options: GenerateOptions): Promise<Generation>;
  /**
   * Which layer of a llama-kind model gets which spec so that a budget is spent best: an ordinary config, and the table
   * that led to it. Every linear layer of the transformer blocks is measured with every candidate. @throws
   * QuantizationError argument-invalid (no budget, one that is too small), not-implemented for other kinds of models.
   */
  autoConfig(model: Model, options: AutoConfigOptions): Promise<AutoConfig>;
  /**
   * The file that llama-imatrix would write: mean squares of what goes into the layers of a model, for `gguf.imatrix` and for
   * llama-quantize. @throws QuantizationError as `quantizeModel` does with that calibration.
   */
  importanceMatrix(model: Model, options: ImportanceOptions): Promise<Uint8Array>;
}
