// An opened model: its files and the core's index.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { formats, weightFilePattern } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import { SharedValues, usualLayer } from '../api/plan_json.js';
import type { Diagnostic, InputFormat, Model, OpenOptions, TensorInfo } from '../api/types.js';
import { defineDisposeSymbols } from '../engine/disposable.js';
import { type IndexCall, tellIndex } from '../engine/index_calls.js';
import type { Instance } from '../engine/instance.js';
import type { BoundModelIndex } from '../engine/module.js';
import { nextTask } from '../io/abort.js';
import type { Companions } from '../io/carried_files.js';
import { type FileSource, maxSiblingBytes } from '../io/file_source.js';
import type { ModelFiles } from '../io/model_files.js';
import { isIndexName, wholeName } from '../io/part_name.js';
import { readIndex } from './file_index.js';
import { readConfig } from './model_config.js';

const inlineReads = 16;

/** Files next to safetensors that say what they are or how they are quantized, or that a conversion to GGUF reads. */
const siblingFiles = [
  'adapter_config.json',
  'hf_quant_config.json',
  'quantize_config.json',
  'quant_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'tokenizer.model',
  'spiece.model',
  'chat_template.jinja',
  'chat_template.json',
  'params.json',
  'preprocessor_config.json',
  'processor_config.json',
  'modules.json',
  '1_Pooling/config.json',
];

/** Named chat templates, which a conversion to GGUF reads, too. */
const templateFolder = 'additional_chat_templates';

const rowsAtOnce = 1024;
/** Headers of smaller files are read in no time. */
const largeBytes = 1 << 20;

/** A plan of so few takes less time than a worker that is asked for it. */
const fewTensors = 300;

let opened = 0;

interface IndexJson {
  format: InputFormat;
  /** Numbers of the added files in the model's order. */
  files: number[];
  bytes: number;
  tensors: number;
  /** Pairs, because a key may be any text. */
  metadata: [string, string][];
  diagnostics: Diagnostic[];
  /** Indexes of tensors whose bytes describe how others are stored. */
  inlineTensors: number[];
}

type TensorJson = Omit<TensorInfo, 'file'> & { file: number };

/** A tensor whose bytes describe how others are stored. */
interface InlineTensor {
  tensor: number;
  file: number;
  begin: number;
  bytes: number;
}

/** Last part of a path or URL, without weight extension and part number. */
function nameOf(where: string): string {
  const last =
    where
      .replace(/[/\\]+$/, '')
      .split(/[/\\]/)
      .at(-1) ?? '';
  return (
    (isIndexName(last) || weightFilePattern.test(last) ? wholeName(last) : last).replace(weightFilePattern, '') ||
    'model'
  );
}

interface Rows {
  finished: IndexJson;
  tensors: TensorInfo[];
  /** Numbers of their files. */
  numbers: number[];
}

/** Of a large model the parts of this are tasks of their own, so that a page can draw meanwhile. */
async function rowsOf(instance: Instance, index: BoundModelIndex, added: readonly FileSource[]): Promise<Rows> {
  const finished = instance.call<IndexJson>(() => index.finish());
  const rows: Rows = { finished, tensors: [], numbers: [] };
  const names = finished.files.map((file) => added[file]?.name ?? '');
  const shapes = new SharedValues<number[]>();
  for (let first = 0; first < finished.tensors; first += rowsAtOnce) {
    if (finished.tensors > rowsAtOnce) await nextTask();
    for (const row of instance.call<TensorJson[]>(() => index.tensors(first, first + rowsAtOnce))) {
      rows.numbers.push(row.file);
      const usual = usualLayer(row.name);
      const layer = row.layer === usual ? usual : row.layer;
      rows.tensors.push(Object.assign(row, { file: names[row.file] ?? '', layer, shape: shapes.shared(row.shape) }));
    }
  }
  return rows;
}

defineDisposeSymbols();

export class OpenedModel implements Model {
  /** Different for every model of this thread. */
  readonly id = opened++;
  readonly format: InputFormat;
  /** Name for output files, without extension. */
  readonly name: string;
  readonly files: { name: string; bytes: number }[];
  readonly bytes: number;
  readonly tensors: TensorInfo[];
  readonly metadata: Record<string, string>;
  readonly config: Record<string, unknown> | null;
  readonly diagnostics: Diagnostic[];
  readonly parts: OpenedModel[] = [];
  readonly #instance: Instance;
  readonly #index: BoundModelIndex;
  readonly #files: ModelFiles;
  readonly #weights: FileSource[];
  #tokenizer: Record<string, string> | null | undefined;
  readonly #inlineTensors: InlineTensor[];
  readonly #calls: IndexCall[];
  #closed = false;

  private constructor(
    instance: Instance,
    index: BoundModelIndex,
    files: ModelFiles,
    added: FileSource[],
    calls: IndexCall[],
    { finished, tensors, numbers }: Rows,
  ) {
    const { format, bytes, metadata, diagnostics, inlineTensors } = finished;
    const weights = finished.files.flatMap((file) => added[file] ?? []);
    this.format = format;
    this.name = nameOf(files.name ?? weights[0]?.name ?? '');
    this.files = weights.map((source) => ({ name: source.name, bytes: source.size }));
    this.bytes = bytes;
    this.tensors = tensors;
    this.metadata = Object.fromEntries(metadata);
    this.config = files.config === null ? null : readConfig(instance, index, files.config);
    if (files.config !== null) calls.push({ name: 'readConfig', args: [files.config] });
    this.diagnostics = [...files.diagnostics, ...diagnostics];
    this.#inlineTensors = inlineTensors.flatMap((tensor) => {
      const info = this.tensors[tensor];
      const file = numbers[tensor];
      return info && file !== undefined ? [{ tensor, file, begin: info.begin, bytes: info.bytes }] : [];
    });
    this.#instance = instance;
    this.#index = index;
    this.#files = files;
    this.#weights = weights;
    this.#calls = calls;
  }

  /** Reads the headers. Errors: the core's (file-invalid, tensor-missing...), source-invalid, read-failed. */
  static async open(instance: Instance, files: ModelFiles, options: OpenOptions): Promise<OpenedModel> {
    const model = await OpenedModel.#openOne(instance, files, options);
    try {
      for (const part of files.parts) model.parts.push(await OpenedModel.#openOne(instance, part, options));
      return model;
    } catch (error) {
      await model.close();
      throw error;
    }
  }

  static async #openOne(instance: Instance, files: ModelFiles, options: OpenOptions): Promise<OpenedModel> {
    const index = instance.run((module) => new module.ModelIndex());
    const calls: IndexCall[] = [];
    const tell = <T>(call: IndexCall) => {
      calls.push(call);
      return tellIndex(instance, index, call) as T;
    };
    if (options.stripPrefix) tell({ name: 'stripPrefixes', args: [] });
    let weights = files.weights;
    const added: FileSource[] = []; // in the order of the core's files
    try {
      if (files.shardMap !== null) {
        const text = files.shardMap;
        const { files: names } = instance.call<{ files: string[] }>(() => tell({ name: 'readShardMap', args: [text] }));
        if (files.shard !== null && !names.includes(files.shard))
          throw failure('source-invalid', files.shard, 'the index next to this file does not name it; open the index');
        weights = [];
        for (const name of names) weights.push(await files.openShard(name));
      }
      const add = (source: FileSource) => {
        added.push(source);
        return tell<number>({ name: 'addFile', args: [source.name, source.size] });
      };
      const read = async (source: FileSource) => {
        const { data, inflated } = await readIndex(instance, index, calls, add(source), source, files);
        await source.close();
        for (const file of data) add(file);
        for (const file of inflated) await readIndex(instance, index, calls, add(file), file, files);
      };
      for (const source of weights) await read(source);
      if (weights.some(({ size }) => size > largeBytes)) await nextTask();
      for (const name of instance.call<string[]>(() => index.missingParts())) {
        const part = await files.openSibling(name);
        if (!part) break; // `finish` names it
        await read(part);
      }
      calls.push({ name: 'finish', args: [] });
      const model = new OpenedModel(instance, index, files, added, calls, await rowsOf(instance, index, added));
      if (formats.inputs[model.format].hasSiblingFiles) await model.#readSiblingFiles();
      await model.#readInlineTensors();
      if (model.tensors.length <= fewTensors) calls.length = 0;
      return model;
    } catch (error) {
      instance.free(index);
      await Promise.all([...weights, ...added].map((source) => source.close()));
      throw error;
    }
  }

  /** The core's index; only in the instance that opened the model. Errors: argument-invalid, state-invalid. */
  indexFor(instance = this.#instance): BoundModelIndex {
    if (instance !== this.#instance) throw failure('argument-invalid', 'model', 'was opened by another quantizer');
    if (this.#closed) throw failure('state-invalid', 'model', 'is closed');
    return this.#index;
  }

  /** What told the index of this model, for that of another thread; null for few tensors. Errors: those of `indexFor`. */
  callsFor(instance: Instance): IndexCall[] | null {
    this.indexFor(instance);
    return this.#calls.length > 0 ? this.#calls : null;
  }

  /** For an ONNX model: bytes that, appended to the file, make graph values outputs. */
  addedOutputs(names: readonly string[]): Uint8Array {
    const index = this.indexFor();
    return this.#instance.bytes(() => index.addedOutputs(JSON.stringify(names)));
  }

  get weights(): readonly FileSource[] {
    return this.#weights;
  }
  /** The bytes are copied: they may be the source's own. */
  #tell(call: IndexCall & { bytes: Uint8Array }): unknown {
    this.#calls.push({ ...call, bytes: call.bytes.slice() });
    return tellIndex(this.#instance, this.#index, call);
  }

  async #readSiblingFiles(): Promise<void> {
    const add = (name: string, bytes: Uint8Array) => this.#tell({ name: 'setSiblingFile', args: [name], bytes });
    const templates = (await this.#files.namesIn(templateFolder)).filter((name) => name.endsWith('.jinja'));
    const names = new Set([...siblingFiles, ...templates.sort().map((name) => `${templateFolder}/${name}`)]);
    for (const name of names) {
      const bytes = await this.#files.readSibling(name);
      if (!bytes) continue;
      add(name, bytes);
      if (name !== 'modules.json') continue;
      const { modulePaths } = await loaded(import('../io/carried_files.js'));
      for (const path of modulePaths(new TextDecoder().decode(bytes))) names.add(`${path}/config.json`);
    }
  }

  async #readInlineTensors(): Promise<void> {
    const read = async ({ tensor, file, begin, bytes }: InlineTensor) => {
      const source = this.#weights[file];
      if (!source) throw new RangeError(`file ${file} of the model does not exist`);
      const content = await source.read(begin, bytes);
      this.#instance.done(() => this.#tell({ name: 'setInlineBytes', args: [tensor], bytes: content }) as boolean);
    };
    for (let at = 0; at < this.#inlineTensors.length; at += inlineReads) {
      const batch = this.#inlineTensors.slice(at, at + inlineReads);
      await Promise.all(batch.map(read));
      // The next batch reads on in the last file. Not all at the end: a model has more files than a process may open.
      const done = new Set(batch.map(({ file }) => file));
      const next = this.#inlineTensors[at + inlineReads]?.file;
      for (const file of done) if (file !== next) await this.#weights[file]?.close();
    }
  }

  /** Text of config.json next to the weights, or null. */
  get configText(): string | null {
    return this.#files.config;
  }
  /** Small files for folder outputs, and what such an output lacks. */
  companions(): Promise<Companions> {
    return this.#files.companions();
  }
  /** Whether folder outputs put it into `onnx/`, as its own folder does. */
  get isInOnnxFolder(): boolean {
    return this.#files.isInOnnxFolder;
  }

  /** The file at a path in the model's folder; null if it is missing or the folder cannot be listed. */
  readSibling(path: string): Promise<Uint8Array | null> {
    return this.#files.readSibling(path);
  }

  async siblingFile(name: string): Promise<Uint8Array | null> {
    check(name, 'string', 'name');
    const own = await this.#ownTokenizerFile(name);
    if (own) return own;
    let found: Uint8Array | null = null;
    for (const file of (await this.companions()).files) {
      try {
        if (file.name !== name) continue;
        if (file.size > maxSiblingBytes)
          throw failure('file-too-large', name, `${file.size} bytes; such files may have ${maxSiblingBytes}`);
        found = (await file.read(0, file.size)).slice();
      } finally {
        await file.close();
      }
    }
    return found;
  }

  /** Of a file that describes itself: its tokenizer, in the words of the file of that name; null if it has none. */
  async #ownTokenizerFile(name: string): Promise<Uint8Array | null> {
    if (!formats.inputs[this.format].carriesConfig || !/^tokenizer(_config)?\.json$/.test(name)) return null;
    const index = this.indexFor();
    const { tokenizerFilesOf } = await loaded(import('./gguf_tokenizer.js'));
    if (this.#tokenizer === undefined)
      this.#tokenizer = tokenizerFilesOf({
        metadata: this.metadata,
        array: (key) => this.#instance.call<unknown[]>(() => index.metadataArray(key)),
        pretokenizer: (pre) => this.#instance.call<object | null>(() => index.pretokenizer(pre)),
      });
    const text = this.#tokenizer?.[name];
    return text === undefined ? null : new TextEncoder().encode(text);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#calls.length = 0;
    this.#instance.free(this.#index);
    await Promise.all([...this.#weights, ...this.parts].map((source) => source.close()));
  }

  /** For `console.log` in Node: not every tensor. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const { format, name, bytes, tensors, files } = this;
    return `Model { format: '${format}', name: '${name}', bytes: ${bytes}, tensors: ${tensors.length}, files: ${files.length} }`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
