// The weight files of a run while they are written. Positioned targets get every piece at once; append-only targets get
// one file after another, front to back, and early pieces wait in memory.

import { failure } from '../api/errors.js';
import { type OutputFile, type OutputTarget, writeFailure } from '../io/target.js';
import type { ResultSink } from '../pool/job_loop.js';
import type { Piece, WrittenBytes } from '../worker/jobs.js';
import type { OutputPath } from '../worker/protocol.js';

export interface PlannedFile {
  name: string;
  bytes: number;
  /** Bytes known before the run: headers, activation scales. */
  literals: { offset: number; bytes: Uint8Array<ArrayBuffer> }[];
}

interface FileState extends PlannedFile {
  number: number;
  output: OutputFile | null;
  /** Bytes written or waiting. */
  taken: number;
  /** Append-only: waiting pieces by offset, and the length written. */
  early: Map<number, Uint8Array<ArrayBuffer>>;
  position: number;
  /** Positioned: pending writes, and whether the file was finished before the end of the run. */
  pending: number;
  isFinished: boolean;
}

/** For resumable runs: existing files, and a callback for completed ones. */
export interface Keeping {
  files: ReadonlySet<number>;
  keep(file: number): Promise<void>;
}

/** Headers of large models are large, and old objects wait long for the collector of garbage: the bytes move to an object
 * that dies young. */
function freeBuffer(buffer: ArrayBuffer): void {
  if (buffer.byteLength > 0) structuredClone(buffer, { transfer: [buffer] });
}

export class OutputFiles implements ResultSink {
  readonly #target: OutputTarget;
  readonly #files: FileState[];
  readonly #planned: number;
  readonly #limit: number;
  readonly #keeping: Keeping | null;
  /** Bytes taken but not written. */
  #waiting = 0;
  #writing = 0;
  #current = 0;
  #failed: { error: unknown } | null = null;
  #listeners: (() => void)[] = [];

  /** `files`: null for those of other parts. `limit`: waiting bytes at which no more jobs are started. */
  constructor(target: OutputTarget, files: (PlannedFile | null)[], limit: number, keeping: Keeping | null = null) {
    this.#target = target;
    this.#limit = limit;
    this.#planned = files.length;
    this.#keeping = keeping;
    this.#files = files.flatMap((file, number) => {
      if (!file) return [];
      const isFinished = keeping?.files.has(number) === true;
      return [{ ...file, number, output: null, taken: 0, early: new Map(), position: 0, pending: 0, isFinished }];
    });
  }

  /** Creates the files (append-only: in turn) and writes their known bytes. */
  async start(): Promise<void> {
    for (const state of this.#files) {
      if (state.isFinished) continue;
      if (this.#target.isPositioned) state.output = await this.#target.create(state.name, state.bytes);
      for (const { offset, bytes } of state.literals) this.#take({ file: state.number, offset, bytes });
    }
    if (!this.#target.isPositioned) void this.#append();
  }

  /** Frees the known bytes of files once they are written. An append-only target still waits for some, and keeps them. */
  async forgetLiterals(): Promise<void> {
    if (this.#target.isPositioned) while (this.#writing > 0) await this.changed();
    for (const { literals } of this.#files) {
      if (this.#target.isPositioned) for (const { bytes } of literals) freeBuffer(bytes.buffer);
      literals.length = 0;
    }
  }

  /** Paths that workers may write, by file index in the plan. */
  get paths(): (OutputPath | null)[] {
    const paths = Array.from({ length: this.#planned }, (): OutputPath | null => null);
    for (const { number, name, output } of this.#files) if (output?.path) paths[number] = { name, path: output.path };
    return paths;
  }

  get isWrittenByWorkers(): boolean {
    return this.#files.every(({ output, isFinished }) => isFinished || output?.path != null);
  }

  accept(result: WrittenBytes): void {
    for (const [file, bytes] of result.written) {
      const state = this.#state(file);
      state.taken += bytes;
      state.output?.written?.(bytes);
    }
    for (const piece of result.pieces) this.#take(piece);
    if (this.#keeping) for (const { number } of this.#files) this.#keepIfComplete(number);
    if (!this.#target.isPositioned) void this.#append();
  }

  hasRoom(running: number): boolean {
    // If nothing is pending, only another job can bring the piece the others wait for.
    return this.#waiting <= this.#limit || (running === 0 && this.#writing === 0);
  }

  changed(): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed.error);
    return new Promise((resolve, reject) => {
      this.#listeners.push(() => (this.#failed ? reject(this.#failed.error) : resolve()));
    });
  }

  /** Waits for all writes and checks that files are complete. */
  async finish(): Promise<void> {
    for (const { name, bytes, taken, isFinished } of this.#files) {
      if (taken !== bytes && !isFinished)
        throw failure('state-invalid', name, `${taken} bytes were written, but ${bytes} were planned`);
    }
    const isBusy = () =>
      this.#target.isPositioned ? this.#writing > 0 : this.#current < this.#files.length || this.#writing > 0;
    while (isBusy()) await this.changed();
    if (this.#failed) throw this.#failed.error;
    if (!this.#target.isPositioned) return;
    for (const { output, isFinished } of this.#files) if (!isFinished) await output?.finish();
  }

  #keepIfComplete(file: number): void {
    const state = this.#state(file);
    if (state.isFinished || state.taken !== state.bytes || state.pending > 0 || this.#failed) return;
    state.isFinished = true;
    void this.#work(async () => {
      await state.output?.finish();
      await this.#keeping?.keep(file);
    });
  }

  #state(file: number): FileState {
    const state = this.#files.find(({ number }) => number === file);
    if (!state)
      throw new RangeError(`a task wrote to file ${file}, which is not one of the ${this.#files.length} of this run`);
    return state;
  }

  #take({ file, offset, bytes }: Piece): void {
    const state = this.#state(file);
    if (bytes.byteLength === 0) return;
    state.taken += bytes.byteLength;
    this.#waiting += bytes.byteLength;
    if (this.#target.isPositioned) {
      state.pending += 1;
      void this.#work(async () => {
        await this.#write(state, bytes, offset);
        state.pending -= 1;
        if (this.#keeping) this.#keepIfComplete(file);
      });
    } else state.early.set(offset, bytes);
  }

  async #write(state: FileState, bytes: Uint8Array<ArrayBuffer>, offset: number): Promise<void> {
    await state.output?.write(bytes, offset);
    this.#waiting -= bytes.byteLength;
  }

  /** Counts a pending write, keeps its failure, and notifies waiters. */
  async #work(step: () => Promise<void>): Promise<void> {
    this.#writing += 1;
    try {
      await step();
    } catch (error) {
      this.#failed ??= { error: writeFailure('target', error) };
    }
    this.#writing -= 1;
    for (const listener of this.#listeners.splice(0)) listener();
  }

  /** Append-only: writes all pieces that are next. One loop at a time. */
  async #append(): Promise<void> {
    if (this.#writing > 0 || this.#failed) return;
    const step = this.#nextStep();
    if (!step) return;
    await this.#work(step);
    await this.#append();
  }

  #nextStep(): (() => Promise<void>) | null {
    const state = this.#files[this.#current];
    if (!state) return null;
    const { output } = state;
    if (!output) {
      return async () => {
        state.output = await this.#target.create(state.name, state.bytes);
      };
    }
    const bytes = state.early.get(state.position);
    if (bytes) {
      return async () => {
        state.early.delete(state.position);
        await this.#write(state, bytes, state.position);
        state.position += bytes.byteLength;
      };
    }
    if (state.position < state.bytes) return null;
    this.#current += 1;
    return () => output.finish();
  }
}
