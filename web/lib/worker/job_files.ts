// The files and tasks of one run in a worker, opened and unpacked on first use.

import type { BoundWork } from '../engine/bound_work.js';
import type { Instance } from '../engine/instance.js';
import type { ContextFiles } from './protocol.js';
import type { TileInput, TileOutput, WorkerHost } from './tile_input.js';

/** Reads in the main thread what the worker cannot read. */
type ReadInput = (model: number, file: number, offset: number, length: number) => Promise<Uint8Array>;

/** Inputs, and outputs, that a worker holds open. Processes may have few descriptors (256 on macOS), and models thousands
 * of shards. */
const mostOpen = 12;

/** Removes the entry that was used longest ago, where `files` is full. */
function makeRoom<Key, File>(files: Map<Key, File>): File | null {
  const oldest = files.size < mostOpen ? undefined : files.entries().next().value;
  if (!oldest) return null;
  files.delete(oldest[0]);
  return oldest[1];
}

/** The entry `key`, which becomes the one used last. */
function used<Key, File>(files: Map<Key, File>, key: Key): File | undefined {
  const file = files.get(key);
  if (file !== undefined) {
    files.delete(key);
    files.set(key, file);
  }
  return file;
}

export class JobFiles {
  readonly #host: WorkerHost;
  readonly #files: Omit<ContextFiles, 'work'>;
  readonly #ask: ReadInput;
  readonly #inputs = new Map<string, TileInput>();
  readonly #outputs = new Map<number, TileOutput>();
  /** Null once unpacked. */
  readonly #packed: (Uint8Array | null)[];
  readonly #work = new Map<number, { instance: Instance; bound: BoundWork }>();

  constructor(host: WorkerHost, { work, ...files }: ContextFiles, ask: ReadInput) {
    this.#host = host;
    this.#files = files;
    this.#packed = [...work];
    this.#ask = ask;
  }

  /** Takes the packed tasks of a job in the place of the last job's; keeps all if there are none. */
  replaceWork(work: [number: number, packed: Uint8Array][]): void {
    if (work.length === 0) return;
    const named = new Map(work);
    for (const [number, { instance, bound }] of this.#work) {
      if (named.delete(number)) continue;
      instance.free(bound);
      this.#work.delete(number);
    }
    this.#packed.length = 0;
    for (const [number, packed] of named) this.#packed[number] = packed;
  }

  /** Errors: argument-invalid. */
  work(instance: Instance, number: number): BoundWork {
    let work = this.#work.get(number);
    if (!work) {
      const packed = this.#packed[number];
      if (!packed) throw new RangeError(`a job names tasks ${number}, which the run does not have`);
      work = { instance, bound: instance.unpack(packed) };
      this.#work.set(number, work);
      this.#packed[number] = null;
    }
    return work.bound;
  }

  input(model: number, file: number): TileInput {
    const key = `${model}/${file}`;
    let input = used(this.#inputs, key);
    if (!input) {
      const source = this.#files.inputs[model]?.[file];
      if (!source) throw new RangeError(`a task names file ${file} of model ${model}, which does not exist`);
      makeRoom(this.#inputs)?.close();
      input = this.#host.openInput(source, (offset, length) => this.#ask(model, file, offset, length));
      this.#inputs.set(key, input);
    }
    return input;
  }

  /** Null if this file's output is sent back. Errors: write-failed, also of another file that is closed for it. */
  async output(file: number): Promise<TileOutput | null> {
    const target = this.#files.outputs[file];
    if (!target) return null;
    let output = used(this.#outputs, file);
    if (!output) {
      const oldest = makeRoom(this.#outputs);
      if (oldest) await oldest.settle().finally(oldest.close);
      output = this.#host.openOutput(target.name, target.path);
      this.#outputs.set(file, output);
    }
    return output;
  }

  /** Resolves when all output is written. */
  async settle(): Promise<void> {
    for (const output of this.#outputs.values()) await output.settle();
  }

  close(): void {
    for (const input of this.#inputs.values()) input.close();
    for (const output of this.#outputs.values()) output.close();
    for (const { instance, bound } of this.#work.values()) instance.free(bound);
    this.#inputs.clear();
    this.#outputs.clear();
    this.#work.clear();
  }
}
