// What a job works with: the engine, tiles of the run's files, and progress reports.

import type { BoundWork } from '../engine/bound_work.js';
import type { Instance } from '../engine/instance.js';
import type { StoredTile, TileWrite } from '../engine/module.js';
import type { JobFiles } from './job_files.js';
import type { Piece, WorkProgress, WrittenBytes } from './jobs.js';
import type { Team } from './team.js';

export class JobHost {
  readonly instance: Instance;
  /** Call between pieces of work; may wait, and throws if the job is cancelled. */
  readonly pause: () => Promise<void>;
  readonly progress: (progress: WorkProgress) => void;
  /** Those that do the job with this worker. */
  readonly team: Team;
  readonly #files: JobFiles;
  readonly #pieces: Piece[] = [];
  readonly #written = new Map<number, number>();

  constructor(
    instance: Instance,
    files: JobFiles,
    pause: () => Promise<void>,
    progress: (progress: WorkProgress) => void,
    team: Team,
  ) {
    this.instance = instance;
    this.#files = files;
    this.pause = pause;
    this.progress = progress;
    this.team = team;
  }

  work(number: number): BoundWork {
    return this.#files.work(this.instance, number);
  }

  /** Reads the bytes of a tile. `following`: number of consecutive tiles read next. */
  async read(model: number, reader: { reads(tile: number): number }, tile: number, following = 0): Promise<void> {
    const reads = this.instance.reads(() => reader.reads(tile));
    const behind = reads.length === 1 ? following : 0; // tiles of several pieces are not contiguous
    for (const read of reads) await this.#files.input(model, read.file).fill(this.instance, read, behind);
  }

  /** Writes a tile's output from module memory. Returns its sums. */
  async write(tile: StoredTile): Promise<Float64Array> {
    for (const write of tile.writes) await this.#write(write);
    return tile.sums;
  }

  /** Output since the last call. */
  written(): WrittenBytes {
    const written = [...this.#written];
    this.#written.clear();
    return { pieces: adjoined(this.#pieces.splice(0)), written };
  }

  /** Resolves when the worker has written all its output. */
  settle(): Promise<void> {
    return this.#files.settle();
  }

  async #write({ file, offset, pointer, bytes }: TileWrite): Promise<void> {
    if (bytes === 0) return;
    const output = await this.#files.output(file);
    if (output) {
      await output.write(this.instance, pointer, bytes, offset);
      this.#written.set(file, (this.#written.get(file) ?? 0) + bytes);
    } else {
      this.#pieces.push({ file, offset, bytes: this.instance.copyOut(pointer, bytes) });
    }
  }
}

/** Joins contiguous pieces: tiles are small, and each write to a file handle is costly in browsers. */
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

export function joined(arrays: Float64Array[]): Float64Array {
  const all = new Float64Array(arrays.reduce((length, array) => length + array.length, 0));
  let position = 0;
  for (const array of arrays) {
    all.set(array, position);
    position += array.length;
  }
  return all;
}
