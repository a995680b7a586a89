// Runs a job: tile by tile, read, compute, write. Host-neutral; the same code runs in workers and, with 0 threads, in
// the thread of the caller.

import type { Instance } from '../engine/instance.js';
import type { BoundTensorDecoder, BoundTensorSession, TileRead, TileWrite } from '../engine/module.js';
import { runCalibration, runObservation } from './calibration_job.js';
import { runDistribution } from './distribution_job.js';
import { type ForwardHost, runContinuation, runForward } from './forward_job.js';
import {
  type CalibrationWork,
  type ContextFiles,
  type Job,
  type JobPart,
  type JobResult,
  type PartResult,
  type Piece,
  sumsPerUnit,
  type WorkProgress,
} from './protocol.js';
import { runSensitivity } from './sensitivity_job.js';
import type { TileInput, TileOutput, WorkerHost } from './tile_input.js';

interface Sums {
  sums: number;
  units: number;
}

/** The files of one run, opened when first used. */
export class JobContext {
  readonly #host: WorkerHost;
  readonly #files: ContextFiles;
  readonly #ask: (input: number, file: number, offset: number, length: number) => Promise<Uint8Array>;
  readonly #inputs = new Map<string, TileInput>();
  readonly #outputs = new Map<number, TileOutput>();

  constructor(
    host: WorkerHost,
    files: ContextFiles,
    ask: (input: number, file: number, offset: number, length: number) => Promise<Uint8Array>,
  ) {
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

/** One job under way. `pause` runs between tiles; it may wait, and throws when the job is not wanted any more. */
export class JobRunner {
  readonly #instance: Instance;
  readonly #context: JobContext;
  readonly #pause: () => Promise<void>;
  readonly #report: (progress: WorkProgress) => void;
  readonly #pieces: Piece[] = [];
  readonly #written = new Map<number, number>();

  constructor(
    instance: Instance,
    context: JobContext,
    pause: () => Promise<void>,
    report: (progress: WorkProgress) => void,
  ) {
    this.#instance = instance;
    this.#context = context;
    this.#pause = pause;
    this.#report = report;
  }

  async run(job: Job): Promise<JobResult> {
    const parts: PartResult[] = [];
    try {
      for (const part of job.parts) parts.push(await this.#part(part));
    } catch (error) {
      await this.#context.settle().catch(() => {}); // files may be closed after this
      throw error;
    }
    await this.#context.settle();
    return { parts, pieces: adjoined(this.#pieces), written: [...this.#written] };
  }

  async #part(part: JobPart): Promise<PartResult> {
    if (part.kind === 'compare') return this.#compare(part.left, part.right, part.first, part.last);
    if (part.kind === 'forward')
      return { sums: await runForward(this.#instance, part.work, this.#forward), state: null };
    if (part.kind === 'continue')
      return { sums: await runContinuation(this.#instance, part.work, this.#forward), state: null };
    if (part.kind === 'sensitivity')
      return { sums: await runSensitivity(this.#instance, part.work, this.#forward), state: null };
    if (part.kind === 'observe-inputs')
      return { sums: new Float64Array(0), state: await runObservation(this.#instance, part.work, this.#forward) };
    if (part.kind === 'distribution')
      return runDistribution(this.#instance, part.work, async (model, decoder, tile) => {
        await this.#pause();
        await this.#read(model, decoder, tile);
      });
    if (part.kind === 'calibrate') return this.#calibrate(part.work);
    const session = this.#instance.run((module) => new module.TensorSession(part.task));
    try {
      const { observePasses } = this.#instance.call<{ observePasses: number }>(() => session.info());
      if (part.kind === 'observe') {
        await this.#observe(session, part.first, part.last, observePasses);
        return { sums: new Float64Array(0), state: this.#state(session) };
      }
      if (part.kind === 'run') {
        const { state } = part;
        if (state) {
          this.#instance.withBytes(state, (pointer) =>
            this.#instance.call<null>(() => session.takeState(pointer, state.byteLength)),
          );
        }
        return await this.#quantize(session, part.first, part.last, false);
      }
      await this.#observe(session, part.first, part.last, observePasses);
      // A single tile is still in the session's memory: it is not read again.
      return await this.#quantize(session, part.first, part.last, part.last - part.first === 1);
    } finally {
      this.#instance.free(session);
    }
  }

  /** `following`: tiles that come next, one after the other. */
  async #read(model: number, reader: { reads(tile: number): string }, tile: number, following = 0): Promise<void> {
    await this.#fill(
      model,
      this.#instance.call<TileRead[]>(() => reader.reads(tile)),
      following,
    );
  }

  async #fill(model: number, reads: TileRead[], following = 0): Promise<void> {
    const behind = reads.length === 1 ? following : 0; // tiles of several pieces lie apart
    for (const read of reads) await this.#context.input(model, read.file).fill(this.#instance, read, behind);
  }

  get #forward(): ForwardHost {
    return { read: (reads) => this.#fill(0, reads), pause: this.#pause, progress: this.#report };
  }

  async #calibrate(work: CalibrationWork): Promise<PartResult> {
    await runCalibration(this.#instance, work, {
      ...this.#forward,
      write: async (writes) => {
        for (const write of writes) await this.#write(write);
      },
      written: () => {
        const written = [...this.#written];
        this.#written.clear();
        return { pieces: adjoined(this.#pieces.splice(0)), written };
      },
      sums: (result) => this.#sums(result),
    });
    return { sums: new Float64Array(0), state: null };
  }

  async #observe(session: BoundTensorSession, first: number, last: number, passes: number): Promise<void> {
    const isSingle = last - first === 1; // still in the session's memory in the second pass
    for (let pass = 1; pass <= passes; ++pass) {
      if (pass > 1) this.#instance.call<null>(() => session.nextPass());
      for (let tile = first; tile < last; ++tile) {
        await this.#pause();
        if (pass === 1 || !isSingle) await this.#read(0, session, tile, last - tile - 1);
        this.#instance.call<null>(() => session.observe(tile));
      }
    }
  }

  #state(session: BoundTensorSession): Uint8Array {
    const { pointer, bytes } = this.#instance.call<{ pointer: number; bytes: number }>(() => session.state());
    return this.#instance.copyOut(pointer, bytes);
  }

  async #quantize(session: BoundTensorSession, first: number, last: number, isRead: boolean): Promise<PartResult> {
    const sums: Float64Array[] = [];
    for (let tile = first; tile < last; ++tile) {
      await this.#pause();
      if (!isRead) await this.#read(0, session, tile, last - tile - 1);
      const result = this.#instance.call<Sums & { writes: TileWrite[] }>(() => session.run(tile));
      for (const write of result.writes) await this.#write(write);
      sums.push(this.#sums(result));
    }
    return { sums: joined(sums), state: null };
  }

  async #compare(left: string, right: string, first: number, last: number): Promise<PartResult> {
    const decoders: BoundTensorDecoder[] = [];
    const sums: Float64Array[] = [];
    try {
      for (const task of [left, right]) {
        const decoder = this.#instance.run((module) => new module.TensorDecoder(task));
        decoders.push(decoder);
        this.#instance.call(() => decoder.info());
      }
      for (let tile = first; tile < last; ++tile) {
        await this.#pause();
        const values: { pointer: number; count: number }[] = [];
        for (const [model, decoder] of decoders.entries()) {
          await this.#read(model, decoder, tile);
          values.push(this.#instance.call(() => decoder.decode(tile)));
        }
        const [x, y] = values;
        if (!x || !y || x.count !== y.count)
          throw new RangeError(`tile ${tile} has ${x?.count} and ${y?.count} elements`);
        sums.push(
          this.#sums(this.#instance.call<Sums>((module) => module.errorBetween(x.pointer, y.pointer, x.count))),
        );
      }
    } finally {
      for (const decoder of decoders) this.#instance.free(decoder);
    }
    return { sums: joined(sums), state: null };
  }

  async #write({ file, offset, pointer, bytes }: TileWrite): Promise<void> {
    if (bytes === 0) return;
    const output = this.#context.output(file);
    if (output) {
      await output.write(this.#instance, pointer, bytes, offset);
      this.#written.set(file, (this.#written.get(file) ?? 0) + bytes);
    } else {
      this.#pieces.push({ file, offset, bytes: this.#instance.copyOut(pointer, bytes) });
    }
  }

  #sums({ sums, units }: Sums): Float64Array {
    return units === 0 ? new Float64Array(0) : this.#instance.float64(sums, units * sumsPerUnit);
  }
}

/** Pieces that lie end to end as one: tiles are small, and writing to a file handle costs a browser much for each call. */
function adjoined(pieces: Piece[]): Piece[] {
  const runs: Piece[][] = [];
  let end = { file: -1, offset: 0 };
  for (const piece of [...pieces].sort((a, b) => a.file - b.file || a.offset - b.offset)) {
    if (piece.file === end.file && piece.offset === end.offset) runs.at(-1)?.push(piece);
    else runs.push([piece]);
    end = { file: piece.file, offset: piece.offset + piece.bytes.byteLength };
  }
  return runs.flatMap((run) => {
    const [first] = run;
    if (!first || run.length === 1) return run;
    const bytes = new Uint8Array(run.reduce((length, piece) => length + piece.bytes.byteLength, 0));
    for (const piece of run) bytes.set(piece.bytes, piece.offset - first.offset);
    return [{ ...first, bytes }];
  });
}

function joined(arrays: Float64Array[]): Float64Array {
  const all = new Float64Array(arrays.reduce((length, array) => length + array.length, 0));
  let position = 0;
  for (const array of arrays) {
    all.set(array, position);
    position += array.length;
  }
  return all;
}
