/**
 * Bindings of the WebAssembly module (bindings/); only instance.ts calls it.
 *
 * A call that fails gives what no result is (null, false, NaN, 0 or ""), and `takeError()` says why: JSON `{code, where,
 * message, diagnostics?}`. A `number` said to be reads, a tile, regions or parts is the address of a float64 count and as
 * many float64 values (replies.ts), valid until the next call. Pointers are byte offsets into `memory.buffer`; memory
 * may grow in any call, so take new views after each.
 */
import type { BoundWork } from './bound_work.js';
import type { ForwardModule } from './forward_module.js';

/** A read: `rows` pieces of `rowBytes` bytes, `stride` bytes apart from `begin` on, to be stored one after another. */
export interface TileRead {
  /** Component (decoder) or 0 (source tensor). */
  part: number;
  /** Index into the files of the model. */
  file: number;
  begin: number;
  rowBytes: number;
  stride: number;
  rows: number;
  /** Heap address for the bytes. */
  pointer: number;
}

/** One piece of a tile's output. */
export interface TileWrite {
  /** Index into the output files of the plan. */
  file: number;
  /** Absolute byte offset in that file. */
  offset: number;
  pointer: number;
  bytes: number;
}

/** A tile's output; `sums`: 7 for each unit: Σx², Σy², Σ(x−y)², max|x−y|, count; NaN or infinite x, then y. */
export interface StoredTile {
  writes: TileWrite[];
  sums: Float64Array;
}

/** Bytes in the module's memory. */
export interface HeapBytes {
  pointer: number;
  bytes: number;
}

/** Index of an opened model; feed it header bytes, then call `json()`. */
export interface BoundModelIndex {
  /** Adds a file of `bytes` (below 2^53) bytes and returns its number. */
  addFile(name: string, bytes: number): number;
  /** Feeds bytes of a file, first from its start, then from the requested offset; file after file. JSON `{offset,
   * bytes}`: the next request; 0 bytes: done. Then add the file's `dataFiles`, and add and feed its `deflated` `{name,
   * begin, end, bytes, crc}`. */
  feed(file: number, pointer: number, length: number): string;
  /** Parses model.safetensors.index.json. JSON `{files: string[]}`; call before addFile, then add exactly these. */
  readShardMap(text: string): string;
  /** JSON `string[]`: names of the files next to those read that have the missing parts of the model; add and feed them
   * before `finish`, which reports those that are not there. */
  missingParts(): string;
  /** After all files are read: checks shards. JSON `{files: number[], tensors: count, metadata: [key, value][],
   * diagnostics, inlineTensors: number[]}`; `files`: the numbers that addFile gave, in the order that the model's files
   * have from now on; set the bytes of inlineTensors with `setInlineBytes`. */
  finish(): string;
  /** After `finish`: JSON `TensorInfo[]` of the tensors [first, last), `file` as a number. */
  tensors(first: number, last: number): string;
  /** Sets the bytes of one of `inlineTensors`. */
  setInlineBytes(tensor: number, pointer: number, bytes: number): boolean;
  /** Of a GGUF file: JSON list of a metadata array's texts or numbers; empty if it is none. */
  metadataArray(key: string): string;
  /** JSON: the pre_tokenizer of tokenizer.json for tokenizer.ggml.pre, or null. */
  pretokenizer(name: string): string;
  /** JSON `SentenceModules` (sentence_modules.ts), of the files that setSiblingFile set. */
  sentenceModules(): string;
  /** For ONNX models: JSON `LayerValues` (onnx_inputs.ts). */
  layerValues(): string;
  /** A region: appended to an ONNX file, it makes values graph outputs. `names`: JSON list. */
  addedOutputs(names: string): number;
  /** Before the first file is added: names lose what wrappers added. */
  stripPrefixes(): void;
  /** Keeps config.json, parsed once for all that needs it. JSON `{config, constants: [{path: (string | number)[], value}]}`;
   * numbers that JSON cannot express (`Infinity`, `-Infinity`, `NaN`) are null in `config`. */
  readConfig(text: string): string;
  /** Sets a file that a conversion reads in addition to the weights. */
  setSiblingFile(name: string, pointer: number, bytes: number): void;
  delete(): void;
}

/** A quantization config: parsed when it is first used, and once. */
export interface BoundConfig {
  /** JSON `CalibratedAlgorithm[]`: its algorithms that process a model block by block. */
  calibratedAlgorithms(): string;
  delete(): void;
}

/** The plan of a run. */
export interface BoundPlan {
  /** JSON `Plan` (plan_types.ts) without its tensors. */
  json(): string;
  /** JSON `PlanRows` (plan_json.ts): the tensors [first, last), in order, and the shared values they use first. */
  tensors(first: number, last: number): string;
  /** JSON `PlanTask[]`: the tasks [first, last), in order. */
  work(first: number, last: number): string;
  /** The same tasks, for `Work` in any worker, where they count from 0. A region. */
  pack(first: number, last: number): number;
  /** Known bytes of an output file: JSON `{bytes, places: [file offset, offset in these bytes, bytes][]}`. */
  fileLiterals(file: number): string;
  /** The next of these bytes: a text of all of them would be as large as the names of all tensors. A region. */
  literalBytes(file: number, piece: number): number;
  /** JSON `{layer, role...}[]` for `ActivationObserver`: what calibration must find; "" for nothing. */
  activationRequests(): string;
  /** JSON `{file, begin, bytes}[]`: model bytes needed before the plan can run. Pass them, concatenated, to the next plan. */
  constants(): string;
  /** For a GGUF plan: an llama-imatrix file, a region. `options`: JSON `{found, dat?, dataset?, chunkSize?}`. */
  importanceMatrix(options: string): number;
  /** JSON text of model.safetensors.index.json, or "" for a single file. */
  shardMap(): string;
  /** For a folder output: JSON of the text of its config.json; `""` if it has none. */
  outputConfig(): string;
  delete(): void;
}

/** The weights that two models have in common. */
export interface BoundComparison {
  /** JSON `{pairs: count, diagnostics}`. */
  summary(): string;
  /** JSON `PairRows` (compare.ts): the pairs [first, last), in order, and the shared values they use first. */
  pairs(first: number, last: number): string;
  /** Tasks 2p and 2p + 1 decode the sides of pair first + p, in tiles of the same elements. A region. */
  pack(first: number, last: number): number;
  delete(): void;
}

/** Runs one tensor, tile by tile. */
export interface BoundTensorSession {
  /** Observe passes over all tiles before `run`. */
  observePasses(): number;
  /** Reads; reserves input memory for the tile. Tiles after the task's own are those of joined weights, which are
   * observed in the first pass and not run. */
  reads(tile: number): number;
  /** Observes the tile read last. */
  observe(tile: number): boolean;
  /** Call between two observe passes. */
  nextPass(): boolean;
  /** Observer state, for `takeState` of other sessions: a region. */
  state(): number;
  /** Merges the state of another session of the same task: `count` float32. */
  takeState(pointer: number, count: number): boolean;
  /** Quantizes and packs the tile read last. A tile. */
  run(tile: number): number;
  delete(): void;
}

/** Decodes one stored weight to float32, tile by tile. */
export interface BoundTensorDecoder {
  /** Reads. */
  reads(tile: number): number;
  /** A region: the tile's float32 values. */
  decode(tile: number): number;
  delete(): void;
}

export interface BoundObserver {
  /** `count` elements from `at` on of a batch of `shape`; `batch`: its number, -1: the next whole batch. */
  update(pointer: number, dtype: string, count: number, at: number, shape: string, batch: number): boolean;
  passes(): 1 | 2;
  nextPass(): boolean;
  /** Parts, in scale-shape order: `{zeroPointType}` with `scale`, `zeroPoint` of integers, `min`, `max`, all float32. */
  finish(): number;
  merge(other: BoundObserver): boolean;
  reset(): void;
  delete(): void;
}

export interface WasmquantModule extends ForwardModule {
  /** Current memory; never keep its buffer across calls. */
  memory(): WebAssembly.Memory;
  version(): string;
  presets(): string;
  /** JSON Diagnostic[]. */
  checkConfig(text: string, dialect: string): string;
  /** JSON QuantConfig. */
  parseConfig(text: string, dialect: string): string;
  convertConfig(text: string, to: string): string;
  allocate(bytes: number): number;
  release(pointer: number): void;
  /** Quantizes one tensor by one spec or a list of two. Parts: QuantizedJson (tensor.ts). */
  quantizeTensor(pointer: number, dtype: string, shape: string, spec: string): number;
  /** A region: float32. */
  fakeQuantizeTensor(pointer: number, dtype: string, shape: string, spec: string): number;
  /** Scales: float32, scale-shape order; zeroPoint (float32) and shifts may be 0; secondScale: the other scale of two
   * stages. `given`: JSON {codes, zeroPoint: class of the array or null, scaleShape, pairShifts: count}, to be what the
   * spec has. A region: float32. */
  dequantizeTensor(
    codes: number,
    scale: number,
    zeroPoint: number,
    shifts: number,
    secondScale: number,
    shape: string,
    spec: string,
    given: string,
  ): number;
  Observer: { make(spec: string): BoundObserver | null };
  ModelIndex: new () => BoundModelIndex;
  /** `text`: JSON or a preset's name. */
  Config: new (
    text: string,
  ) => BoundConfig;
  /** `options`: JSON `{format, name, file, onnx, gguf, include_towers, experts, tileBytes, columnTileBytes, calibrates,
   * activations}`; calibrates: activations will be calibrated; activations: results. `constants`: bytes of the model that a
   * plan before this one asked for. */
  Plan: {
    make(
      index: BoundModelIndex,
      config: BoundConfig,
      options: string,
      constants: number,
      constantBytes: number,
      imatrix: number,
      imatrixBytes: number,
    ): BoundPlan | null;
  };
  /** Copies the packed tasks at `pointer`. */
  Work: { make(pointer: number, bytes: number): BoundWork | null };
  TensorSession: { make(work: BoundWork, task: number): BoundTensorSession | null };
  /** `options`: JSON `{tileBytes, columnTileBytes}`. */
  Comparison: {
    make(reference: BoundModelIndex, quantized: BoundModelIndex, options: string): BoundComparison | null;
  };
  TensorDecoder: { make(work: BoundWork, task: number): BoundTensorDecoder | null };
  /** Error between two decoded tiles: a tile without writes. */
  errorBetween(x: number, y: number, count: number): number;
  /** Parts: `{ends, family, vocabulary, maxPositions, tokenBytes, workingBytes, calibrationBytes, heldOutBytes, steps: [{name,
   * floatBytes, tensors: [{slot, name, task, tiles, bytes, streamed}]}]}` with `architecture` and `work`. `described`: the
   * model in whose folder config.json is. `options`: JSON `{tileBytes, columnTileBytes, longest, use}`; use: "calibrate",
   * "run" or "embed". */
  forwardPlan(index: BoundModelIndex, described: BoundModelIndex, options: string): number;
  takeError(): string;
  /** Number of live bound objects, for leak tests. */
  liveObjects(): number;
}

/** What a run must know about an algorithm before it starts. */
export interface CalibratedAlgorithm {
  /** As spelled in the config. */
  name: string;
  /** Tokens are required. */
  needsInputs: boolean;
  /** Changes the inputs of linear layers. */
  changesInputs: boolean;
  /** Also changes embedding, final norm and head. */
  rotatesStream: boolean;
  /** Needs the unquantized model's activations too. */
  needsReference: boolean;
  /** Chooses by inputs that it holds out. */
  holdsOut: boolean;
  /** Part of a larger step: finding nothing to change is not an error. */
  isImplied: boolean;
}

/** The scheduler's view of a task. */
export interface PlanTask {
  /** Index into `Plan.tensors`; -1: a copied range. */
  tensor: number;
  /** Source bytes. */
  bytes: number;
  /** Number of tiles for the plan's `tileBytes`; any worker may run any range. */
  tiles: number;
  /** Observe passes over all tiles before the first runs; sessions that run tiles need the state. */
  observePasses: 0 | 1 | 2;
  /** Whether sessions may share an observe pass and merge their states; else one sees the whole tensor. */
  observedInParts: boolean;
  /** Tiles of other weights that share a scale with this one, observed with it. */
  joinedTiles: number;
  /** Output files it writes. */
  outputs: number[];
}
