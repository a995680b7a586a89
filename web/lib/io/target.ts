// Output in every host: streams (sequential), file handles and folders of the File System Access API (any position; the
// browser swaps files in when they are closed), and {write(name)}.

import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { Target } from '../api/types.js';
import { settledWithin } from './abort.js';
import { isDirectoryHandle, isFileHandle } from './source.js';

/** Identifies the work of a run. */
export interface Work {
  /** Library version. */
  library: string;
  /** Each input file, with evidence that it is unchanged. */
  inputs: string[];
  /** Everything else that determines the output. */
  plan: Iterable<string | Uint8Array>;
}

/** How a run will use its target. */
export interface TargetUse {
  /** OutputTarget.resume will be called. */
  resumes: boolean;
  /** Other runs write to the folder too. */
  isShared: boolean;
}

/** All files of one run. As far as the host allows, no file appears under its name before `commit`. */
export interface OutputTarget {
  /** Whether small files such as config.json can be written next to the weights. */
  readonly isFolder: boolean;
  /** Name of a single file; null: the planned one. */
  readonly fileName: string | null;
  /** For a single file: whether `<its name>_data` can be written next to it. */
  readonly takesData?: boolean;
  /** For a folder: whether names like `folder/name` are allowed. */
  readonly takesFolders?: boolean;
  /** Whether several files may be open at once and written at any position. */
  readonly isPositioned: boolean;
  /** Errors: target-exists if one of these files exists and may not be replaced. */
  check(names: string[]): Promise<void>;
  /** `bytes`: final size. Errors: target-invalid, write-failed. */
  create(name: string, bytes: number): Promise<OutputFile>;
  /**
   * Call before creating files. Returns the files an interrupted run of the same work finished, with their notes, by
   * name; from now on a failure keeps files passed to `keep`. Errors: target-invalid if that run was of other work.
   * Absent: not supported.
   */
  resume?(work: Work): Promise<Map<string, string>>;
  /** Marks a finished file for resuming; `note` is passed to the later run. */
  keep?(name: string, note: string): Promise<void>;
  /** Makes all finished files appear. */
  commit(): Promise<void>;
  /** Removes everything written. Never rejects. */
  abort(reason: unknown): Promise<void>;
}

export interface OutputFile {
  /** Path for a worker to open and write; null: bytes go through `write`. */
  readonly path: string | null;
  /** Writes at an absolute offset; without gaps if the target is not positioned. */
  write(bytes: Uint8Array<ArrayBuffer>, offset: number): Promise<void>;
  /** A worker wrote `bytes` bytes at `path`. */
  written?(bytes: number): void;
  /** Call when all bytes are written. */
  finish(): Promise<void>;
}

/** Names come from files of strangers; callers of `{write(name)}` join them to a folder. Errors: target-invalid for names that leave it. */
export function checkNames(names: readonly string[]): void {
  const isPlain = (name: string) =>
    !/^[a-z]:|\0/i.test(name) && !name.split(/[\\/]/).some((part) => /^\.{0,2}$/.test(part));
  const wrong = names.find((name) => !isPlain(name));
  if (wrong !== undefined)
    throw failure('target-invalid', wrong, 'is not a name inside the target: the source has this name; rename it');
}

export function writeFailure(name: string, thrown: unknown): QuantizationError {
  if (thrown instanceof QuantizationError) return thrown;
  return failure('write-failed', name, `cannot be written: ${textOf(thrown)}`, thrown);
}

/** How long a sink may clean up after an abort, in milliseconds. */
const abortGraceMs = 2000;

/** Streams that a function opens by name, one after another. */
class StreamTarget implements OutputTarget {
  readonly fileName = null;
  readonly isPositioned = false;
  readonly isFolder: boolean;
  readonly #open: (name: string) => Promise<WritableStream<Uint8Array>>;
  #writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

  constructor(isFolder: boolean, open: (name: string) => Promise<WritableStream<Uint8Array>>) {
    this.isFolder = isFolder;
    this.#open = open;
  }

  async check(): Promise<void> {}

  async create(name: string): Promise<OutputFile> {
    let writer: WritableStreamDefaultWriter<Uint8Array>;
    try {
      const stream = await this.#open(name);
      writer = stream.getWriter();
    } catch (error) {
      throw failure('target-invalid', name, `no stream to write to: ${textOf(error)}`, error);
    }
    this.#writer = writer;
    const attempt = async (step: () => Promise<void>) => {
      try {
        await step();
      } catch (error) {
        throw writeFailure(name, error);
      }
    };
    // Only write() waits until the sink has taken the bytes: backpressure.
    return {
      path: null,
      write: (bytes) => attempt(() => writer.write(bytes)),
      finish: () =>
        attempt(async () => {
          await writer.close();
          this.#writer = null;
        }),
    };
  }

  async commit(): Promise<void> {}

  async abort(reason: unknown): Promise<void> {
    // A stream finishes its current write before it aborts; a hanging sink must not block the caller.
    if (this.#writer) await settledWithin(abortGraceMs, this.#writer.abort(reason));
    this.#writer = null;
  }
}

/** The folder of a name such as `1_Pooling/config.json`, and the name in it. */
async function placeIn(handle: FileSystemDirectoryHandle, name: string, create: boolean) {
  const parts = name.split('/');
  const file = parts.pop() ?? '';
  let folder = handle;
  for (const part of parts) folder = await folder.getDirectoryHandle(part, { create });
  return { folder, file };
}

class HandleTarget implements OutputTarget {
  readonly isPositioned = true;
  readonly isFolder: boolean;
  readonly fileName: string | null;
  readonly #handleFor: (name: string) => Promise<FileSystemFileHandle>;
  /** Undoes the creation of empty files. */
  readonly #remove: (name: string) => Promise<void>;
  readonly #existing: (name: string) => Promise<boolean>;
  readonly #open: { name: string; stream: FileSystemWritableFileStream; isNew: boolean }[] = [];

  constructor(handle: FileSystemFileHandle | FileSystemDirectoryHandle, overwrite: boolean) {
    this.isFolder = handle.kind === 'directory';
    this.fileName = handle.kind === 'file' ? handle.name : null;
    if (isDirectoryHandle(handle)) {
      this.#handleFor = async (name) => {
        const { folder, file } = await placeIn(handle, name, true);
        return folder.getFileHandle(file, { create: true });
      };
      this.#remove = async (name) => {
        const { folder, file } = await placeIn(handle, name, false);
        await folder.removeEntry(file);
      };
      this.#existing = async (name) => {
        if (overwrite) return false;
        const found = await placeIn(handle, name, false)
          .then(({ folder, file }) => folder.getFileHandle(file))
          .catch(() => null);
        return found !== null && (await found.getFile()).size > 0;
      };
    } else {
      // Picking the file implies consent to replace it.
      this.#existing = async () => false;
      this.#handleFor = async () => handle as FileSystemFileHandle;
      this.#remove = async () => {};
    }
  }

  async check(names: string[]): Promise<void> {
    for (const name of names) {
      if (await this.#existing(name))
        throw failure('target-exists', name, 'exists already in this folder; choose another or pass overwrite');
    }
  }

  async create(name: string): Promise<OutputFile> {
    let stream: FileSystemWritableFileStream;
    try {
      const handle = await this.#handleFor(name);
      const isNew = (await handle.getFile()).size === 0;
      stream = await handle.createWritable({ keepExistingData: false });
      this.#open.push({ name, stream, isNew });
    } catch (error) {
      throw failure('target-invalid', name, `cannot be created: ${textOf(error)}`, error);
    }
    return {
      path: null,
      async write(bytes, position) {
        try {
          await stream.write({ type: 'write', position, data: bytes });
        } catch (error) {
          throw writeFailure(name, error);
        }
      },
      async finish() {},
    };
  }

  async commit(): Promise<void> {
    for (let next = this.#open[0]; next; next = this.#open[0]) {
      const { name, stream } = next;
      await stream.close().catch((error: unknown) => {
        throw writeFailure(name, error);
      });
      this.#open.shift();
    }
  }

  async abort(reason: unknown): Promise<void> {
    for (const { name, stream, isNew } of this.#open.splice(0)) {
      await settledWithin(abortGraceMs, stream.abort(reason));
      if (isNew) await this.#remove(name).catch(() => {});
    }
  }
}

/** Opens a target that is not a path. Errors: target-invalid. */
export function openTarget(target: Target, overwrite: boolean): OutputTarget {
  if (target instanceof WritableStream) {
    if (target.locked) throw failure('target-invalid', 'target', 'this WritableStream is locked by another writer');
    return new StreamTarget(false, async () => target);
  }
  if (isFileHandle(target) || isDirectoryHandle(target)) return new HandleTarget(target, overwrite);
  if (typeof target === 'object' && target !== null && 'write' in target && typeof target.write === 'function') {
    return new StreamTarget(true, (name) => target.write(name));
  }
  const detail = 'not a target; give a WritableStream, a file or folder handle, {write(name)}, or in Node a path';
  throw failure('target-invalid', 'target', detail);
}
