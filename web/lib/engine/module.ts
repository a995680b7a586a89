/**
 * What the WebAssembly module binds (bindings/). Only instance.ts talks to it.
 *
 * Every `string` result is JSON: `{"ok": value}` or `{"error": {"code", "where", "message", "diagnostics"?}}`.
 * Pointers are byte offsets into `memory.buffer`; memory may grow in any call, so views are taken anew after each.
 */
import type { BoundWork } from './bound_work.js';
import type { ForwardModule } from './forward_module.js';

/** One read a tile needs: `rows` pieces of `rowBytes` bytes, `stride` bytes apart, the first at file offset `begin`. They land one after another. */
export interface TileRead {
  /** Component (decoder) or 0 (source tensor). */
  part: number;
  /** Index into the files of the model. */
  file: number;
  begin: number;
  rowBytes: number;
  stride: number;
  rows: number;
  /** Heap address where the bytes go. */
  pointer: number;
}

/** One piece of output a tile produced. */
export interface TileWrite {
  /** Index into the output files of the plan. */
  file: number;
  /** Absolute byte offset in that file. */
  offset: number;
  pointer: number;
  bytes: number;
}

/** What a tile gave: output, and units × 7 float64 at `sums`: Σx², Σy², Σ(x−y)², max|x−y|, count; x, then y, that are NaN
 * or infinite. */
export interface StoredTile {
  writes: TileWrite[];
  sums: number;
  units: number;
}

/** Bytes in the module's memory. */
export interface HeapBytes {
  pointer: number;
  bytes: number;
}

/** Index of an opened model; feed it header bytes, then ask for `json()`. */
export interface BoundModelIndex {
  /** Adds a file of that name and size (bytes as a number below 2^53) and returns its number. */
  addFile(name: string, bytes: number): number;
  /** Bytes of a file, first from its beginning, then from where they were asked for; file after file. JSON `{offset, bytes}`: what is needed next;
   * 0 bytes: nothing, and `dataFiles` are names of files with its data, to be added, `deflated` the compressed files inside it `{name, begin, end, bytes, crc}`, to be added and fed. */
  feed(file: number, pointer: number, length: number): string;
  /** Parses the text of model.safetensors.index.json. JSON `{files: string[]}`; call before addFile, then add exactly those. */
  readShardMap(text: string): string;
  /** After all files are read: checks shards. JSON `{tensors: number, metadata: [key, value][], diagnostics, inlineTensors: number[]}`: tensors whose bytes say how others are stored, to be given by `setInlineBytes`. */
  finish(): string;
  /** After that: JSON of the tensors [first, last), `TensorInfo[]` (file = number). */
  tensors(first: number, last: number): string;
  /** The bytes of a tensor that `finish` listed among `inlineTensors`. JSON null. */
  setInlineBytes(tensor: number, pointer: number, bytes: number): string;
  /** Of ONNX models: JSON of `LayerValues` (onnx_inputs.ts). */
  layerValues(): string;
  /** JSON `{pointer, bytes}`: what makes values outputs of an ONNX graph when it follows the file's last byte. `names`: JSON list. */
  addedOutputs(names: string): string;
  /** A file beside the weights that a conversion reads. */
  setSiblingFile(name: string, pointer: number, bytes: number): void;
  delete(): void;
}

/** Plan of a run. */
export interface BoundPlan {
  /** JSON null when the plan is good, else the error (with diagnostics). */
  error(): string;
  /** JSON of `Plan` (plan_types.ts) without its tensors. */
  json(): string;
  /** JSON of `PlanRows` (plan_json.ts): the tensors [first, last), to be asked for in their order, and what they are the
   * first to name. */
  tensors(first: number, last: number): string;
  /** JSON `PlanTask[]`. */
  work(): string;
  /** The tasks in the order of `work`, for `Work` in any worker. JSON `HeapBytes`; valid until the plan is deleted. */
  pack(): string;
  /** What is known of an output file: JSON `{pointer, bytes, places: [offset in the file, offset in these bytes, bytes][]}`;
   * valid until the plan is deleted. */
  fileLiterals(file: number): string;
  /** JSON `{layer, role...}[]` for `ActivationObserver`: what calibration has to find for the plan; "" for nothing. */
  activationRequests(): string;
  /** JSON `{file, begin, bytes}[]`: bytes of the model that the plan has to know before it can be run. They go, one after
   * another, into the options of the next plan: `constants: pointer, constantsBytes`. */
  constants(): string;
  /** Of a GGUF plan and what calibration found for it. `options`: JSON `{found, dat?, dataset?, chunkSize?}`. JSON
   * `{pointer, bytes}` of a file in llama-imatrix's format; valid until the next call. */
  importanceMatrix(options: string): string;
  /** JSON text of model.safetensors.index.json, or "" for a single file. */
  shardMap(): string;
  /** Of a folder output: JSON text of its config.json; `original` is that of the model, "" for none of either. */
  outputConfig(original: string): string;
  delete(): void;
}

/** Runs one tensor, tile by tile. */
export interface BoundTensorSession {
  /** JSON number: how often every tile is observed before any is run; or the error of the constructor. */
  observePasses(): string;
  /** JSON `TileRead[]`; input memory for the tile is reserved by this call. */
  reads(tile: number): string;
  /** Observes the tile whose bytes were read last. JSON null. */
  observe(tile: number): string;
  /** Between two observe passes. JSON null. */
  nextPass(): string;
  /** What was observed, for `takeState` of other sessions: JSON `{pointer, bytes}`. */
  state(): string;
  /** Adds the state of another session of the same task. JSON null. */
  takeState(pointer: number, bytes: number): string;
  /** Quantizes and packs the tile whose bytes were read last. JSON `StoredTile`. */
  run(tile: number): string;
  delete(): void;
}

/** Decodes one stored weight to float32, tile by tile, and compares two of them. */
export interface BoundTensorDecoder {
  /** JSON null, or the error of the constructor. */
  error(): string;
  reads(tile: number): string;
  /** JSON `{pointer, count}`: float32 values of the tile, flat. */
  decode(tile: number): string;
  delete(): void;
}

export interface WasmquantModule extends ForwardModule {
  /** Current memory; never keep the buffer over a call. */
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
  /** One tensor in memory. JSON `{spec, codes: {pointer, count, bytes, signed}, scale: pointer, scaleShape, zeroPoint: pointer to float32 | null, zeroPointType, sharedExponents?: pointer, pairShifts?: pointer, pairCount?, secondScale?}`; results live until the next call. */
  quantizeTensor(pointer: number, dtype: string, shape: string, spec: string): string;
  /** JSON `{pointer, count}` float32. */
  fakeQuantizeTensor(pointer: number, dtype: string, shape: string, spec: string): string;
  /** codes, scale (float32, scale-shape order), zeroPoint (float32, or pointer 0), shifts (bytes, or pointer 0). JSON `{pointer, count}` float32. */
  dequantizeTensor(
    codes: number,
    scale: number,
    zeroPoint: number,
    shifts: number,
    shape: string,
    spec: string,
  ): string;
  /** The same with JSON lists of two specs; the reply has `secondScale`, the scale of the other stage. */
  quantizeStages(pointer: number, dtype: string, shape: string, specs: string): string;
  fakeQuantizeStages(pointer: number, dtype: string, shape: string, specs: string): string;
  dequantizeStages(
    codes: number,
    scale: number,
    zeroPoint: number,
    secondScale: number,
    shape: string,
    specs: string,
  ): string;
  Observer: new (
    spec: string,
  ) => {
    update(pointer: number, dtype: string, shape: string): string;
    passes(): 1 | 2;
    nextPass(): string;
    /** JSON `{scale, zeroPoint | null, min, max: pointers, count, zeroPointType}` in scale-shape order. */
    finish(): string;
    merge(other: unknown): string;
    reset(): void;
    delete(): void;
  };
  ModelIndex: new () => BoundModelIndex;
  /** `options`: JSON `{format, name, file, onnx, gguf: {imatrix: pointer, imatrixBytes, ...}, include_towers, include_experts, tileBytes, columnTileBytes, calibrates, activations}`: the last two say
   * whether static inputs and outputs will get their scales, and which were found; ask `error()` before anything else. */
  makePlan(index: BoundModelIndex, config: string, options: string): BoundPlan;
  /** `pointer`: packed tasks, which are copied. Ask `error()` before anything else. */
  Work: new (
    pointer: number,
    bytes: number,
  ) => BoundWork;
  TensorSession: new (work: BoundWork, task: number) => BoundTensorSession;
  /** JSON `{pairs: [{name, tiles, bytes, byColumns, report: TensorReport without error}], diagnostics, work: HeapBytes}`; configs are the text of
   * config.json or "". `options`: JSON `{tileBytes, columnTileBytes}`. Pair p is of the tasks 2p and 2p + 1, whose tiles have the same elements, and
   * are columns of one of them where byColumns. `work`: valid until the next call. */
  comparison(
    reference: BoundModelIndex,
    referenceConfig: string,
    quantized: BoundModelIndex,
    quantizedConfig: string,
    options: string,
  ): string;
  TensorDecoder: new (work: BoundWork, task: number) => BoundTensorDecoder;
  /** Error between two decoded tiles: JSON `StoredTile` without writes. */
  errorBetween(x: number, y: number, count: number): string;
  /** JSON `{config, constants: [{path: (string | number)[], value}]}` of the text of a config.json: numbers that JSON has no
   * words for (`Infinity`, `-Infinity`, `NaN`) are null in `config`. */
  modelConfig(text: string): string;
  /** JSON `{config, family, vocabulary, maxPositions, tokenBytes, workingBytes, calibrationBytes, steps: [{name, floatBytes, tensors: [{slot, name, task, tiles, bytes, streamed}]}], work: HeapBytes}`; `work`: valid until the next call.
   * `options`: JSON `{tileBytes, columnTileBytes, length, runs}`; runs: nothing is calibrated, so that GGUF goes, too. */
  forwardPlan(index: BoundModelIndex, config: string, options: string): string;
  /** JSON `CalibratedAlgorithm[]`: algorithms of a config that go through a model block by block. */
  calibratedAlgorithms(config: string): string;
  /** Live bound objects, for leak tests. */
  liveObjects(): number;
}

/** What a run has to know of an algorithm before it begins. */
export interface CalibratedAlgorithm {
  /** As the config spells it. */
  name: string;
  /** Tokens must be given. */
  needsInputs: boolean;
  /** Linear layers read something else afterwards. */
  changesInputs: boolean;
  /** Embedding, final norm and head change too. */
  rotatesStream: boolean;
  /** Activations of the model without quantization are kept beside the others. */
  needsReference: boolean;
  /** Part of a larger step: where a model has nothing for it, nothing is wrong. */
  isImplied: boolean;
}

/** What a task of `BoundPlan.work()` says to the scheduler. */
export interface PlanTask {
  /** Tensor number in `Plan.tensors`; -1: a range that is copied. */
  tensor: number;
  /** Source bytes. */
  bytes: number;
  /** Tiles for the `tileBytes` the plan was made with; any worker may run any range of them. */
  tiles: number;
  /** How often every tile is observed before the first is run; the state goes to each session that runs tiles. */
  observePasses: 0 | 1 | 2;
  /** Several sessions may share an observe pass, and their states be merged; else one sees the whole tensor. */
  observedInParts: boolean;
  /** Output files that it writes to. */
  outputs: number[];
}
