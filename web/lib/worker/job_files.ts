// The files of one run in a worker, opened when first used.

import type { ContextFiles } from './protocol.js';
import type { TileInput, TileOutput, WorkerHost } from './tile_input.js';

/** Reads in the main thread what the worker cannot. */
type ReadInput = (model: number, file: number, offset: number, length: number) => Promise<Uint8Array>;

export class JobFiles {
  readonly #host: WorkerHost;
  readonly #files: ContextFiles;
  readonly #ask: ReadInput;
  readonly #inputs = new Map<string, TileInput>();
  readonly #outputs = new Map<number, TileOutput>();

  constructor(host: WorkerHost, files: ContextFiles, ask: ReadInput) {
    this.#host = host;
    this.#files = files;
    this.#ask = ask;
  }

  input(model: number, file: number): TileInput {
    const key = `${model}/${file}`;
    let input = this.#inputs.get(key);
    if (!input) {
      const source = this.#files.inputs[model]?.[file];
      if (!source) throw new RangeError(`a task names file ${file} of model ${model}, which does not exist`);
      input = this.#host.openInput(source, (offset, length) => this.#ask(model, file, offset, length));
      this.#inputs.set(key, input);
    }
    return input;
  }

  /** Null when output of this file is sent back. */
  output(file: number): TileOutput | null {
    const target = this.#files.outputs[file];
    if (!target) return null;
    let output = this.#outputs.get(file);
    if (!output) {
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
    this.#inputs.clear();
    this.#outputs.clear();
  }
}
