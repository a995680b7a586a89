// Output in every host: streams (sequential), file handles and folders of the File System Access API (any position; the
// browser swaps files in when they are closed), and {write(name)}.

import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { Target } from '../api/types.js';
import { isObject } from '../api/values.js';
import { settledWithin } from './abort.js';
import { isDirectoryHandle, isFileHandle } from './source.js';

/** Identifies the work of a run. */
export interface Work {
  /** Library version. */
  library: string;
  /** Each input file, with evidence that it is unchanged. */
  inputs: string[];
  /** A digest of everything else that determines the output. */
  plan: string;
}

/** How a run will use its target. */
export interface TargetUse {
  /** OutputTarget.resume will be called. */
  resumes: boolean;
  /** Other runs write to the folder too. */
  isShared: boolean;
  /** The output may be added to a folder with other files, see `check`. */
  adds: boolean;
}

/** Files that are in a target already. */
export interface ExistingFiles {
  /** Paths of those directly in it and in the folders `inner`. */
  names(inner: readonly string[]): Promise<string[]>;
  /** Null if there is none. */
  read(name: string): Promise<Uint8Array | null>;
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
  /** Errors: target-exists if one of these files exists and may not be replaced. `replaced`: those of them that may. */
  check(names: string[], replaced?: ReadonlySet<string>): Promise<void>;
  /** Absent if the host does not tell. */
  existing?: ExistingFiles;
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

/** Files that are being opened. An abort waits for them, because they may appear after it. */
class Opening {
  readonly #files: Promise<unknown>[] = [];
  #isOver = false;

  /** Errors: those of `open`; after the end what it opened is closed by `drop`. */
  async add<T>(open: () => Promise<T>, drop: (opened: T) => Promise<unknown>): Promise<T> {
    const opened = open().then(async (file) => {
      if (!this.#isOver) return file;
      await drop(file);
      throw new Error('the run has ended');
    });
    this.#files.push(opened);
    return opened;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await settledWithin(abortGraceMs, Promise.allSettled(this.#files));
  }
}

/** Streams that a function opens by name, one after another. */
class StreamTarget implements OutputTarget {
  readonly fileName = null;
  readonly isPositioned = false;
  readonly isFolder: boolean;
  readonly #open: (name: string) => Promise<WritableStream<Uint8Array>>;
  readonly #opening = new Opening();
  #writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

  constructor(isFolder: boolean, open: (name: string) => Promise<WritableStream<Uint8Array>>) {
    this.isFolder = isFolder;
    this.#open = open;
  }

  async check(): Promise<void> {}

  async create(name: string): Promise<OutputFile> {
    let writer: WritableStreamDefaultWriter<Uint8Array>;
    try {
      const open = async () => (await this.#open(name)).getWriter();
      writer = await this.#opening.add(open, (opened) => settledWithin(abortGraceMs, opened.abort()));
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
    await this.#opening.end();
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

/** What a folder holds already. */
function filesIn(handle: FileSystemDirectoryHandle): ExistingFiles {
  const listed = async (folder: FileSystemDirectoryHandle, prefix: string) => {
    const names: string[] = [];
    for await (const [name, { kind }] of folder.entries()) if (kind === 'file') names.push(prefix + name);
    return names;
  };
  const found = (name: string) => placeIn(handle, name, false).catch(() => null);
  return {
    async names(inner) {
      const names = await listed(handle, '');
      for (const name of inner) {
        const place = await found(`${name}/-`);
        if (place) names.push(...(await listed(place.folder, `${name}/`)));
      }
      return names;
    },
    async read(name) {
      const place = await found(name);
      const file = await place?.folder.getFileHandle(place.file).catch(() => null);
      return file ? new Uint8Array(await (await file.getFile()).arrayBuffer()) : null;
    },
  };
}

/** What a file handle can be written through. */
interface HandleWriter {
  write(bytes: Uint8Array<ArrayBuffer>, position: number): Promise<void>;
  close(): Promise<void>;
  abort(reason: unknown): Promise<void>;
}

/** Safari before 26 has no other in workers, and none in pages. It writes in place. */
interface SyncAccess {
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(bytes: number): void;
  flush(): void;
  close(): void;
}

type AnyHandle = Omit<FileSystemFileHandle, 'createWritable'> & {
  createWritable?: FileSystemFileHandle['createWritable'];
  createSyncAccessHandle?(): Promise<SyncAccess>;
};

async function writerOf(handle: AnyHandle, isEmpty: boolean): Promise<HandleWriter> {
  if (handle.createWritable) {
    const stream = await handle.createWritable({ keepExistingData: false });
    return {
      write: (data, position) => stream.write({ type: 'write', position, data }),
      close: () => stream.close(),
      abort: (reason) => settledWithin(abortGraceMs, stream.abort(reason)),
    };
  }
  if (!handle.createSyncAccessHandle)
    throw new Error(
      'this browser writes handles in workers only (createWritable is missing): start the run in a worker, or give {write(name)}',
    );
  if (!isEmpty)
    throw new Error(
      'this browser writes handles in place (createWritable is missing), so a failure would destroy what it holds: remove it first',
    );
  const access = await handle.createSyncAccessHandle();
  return {
    async write(bytes, position) {
      for (let done = 0; done < bytes.byteLength; ) {
        const written = access.write(bytes.subarray(done), { at: position + done });
        if (!(written > 0)) throw new Error('no more bytes are taken; is the storage full?');
        done += written;
      }
    },
    async close() {
      access.flush();
      access.close();
    },
    async abort() {
      access.truncate(0);
      access.close();
    },
  };
}

/** A file of a run: opened, or complete and closed. */
interface HandleFile {
  name: string;
  writer: HandleWriter;
  /** Removes it, if this run made it. */
  remove(): Promise<void>;
}

class HandleTarget implements OutputTarget {
  readonly isPositioned = true;
  readonly isFolder: boolean;
  readonly fileName: string | null;
  readonly existing?: ExistingFiles;
  readonly #handle: FileSystemFileHandle | FileSystemDirectoryHandle;
  readonly #overwrite: boolean;
  readonly #opening = new Opening();
  readonly #open: HandleFile[] = [];
  readonly #closed: HandleFile[] = [];

  constructor(handle: FileSystemFileHandle | FileSystemDirectoryHandle, overwrite: boolean) {
    this.isFolder = handle.kind === 'directory';
    this.fileName = handle.kind === 'file' ? handle.name : null;
    if (isDirectoryHandle(handle)) this.existing = filesIn(handle);
    this.#handle = handle;
    this.#overwrite = overwrite;
  }

  /** Picking a file implies consent to replace it. */
  async check(names: string[], replaced: ReadonlySet<string> = new Set()): Promise<void> {
    if (this.#overwrite) return;
    for (const name of names.filter((each) => !replaced.has(each))) {
      const size = await sizeIn(this.#handle, name).catch((error: unknown) => {
        throw failure('target-invalid', name, `cannot be looked for: ${textOf(error)}`, error);
      });
      if (size > 0)
        throw failure('target-exists', name, 'exists already in this folder; choose another or pass overwrite');
    }
  }

  async create(name: string): Promise<OutputFile> {
    const drop = async (file: HandleFile) => {
      await file.writer.abort(undefined);
      await file.remove();
    };
    let file: HandleFile;
    try {
      file = await this.#opening.add(() => openFile(this.#handle, name), drop);
    } catch (error) {
      throw failure('target-invalid', name, `cannot be created: ${textOf(error)}`, error);
    }
    this.#open.push(file);
    return {
      path: null,
      async write(bytes, position) {
        try {
          await file.writer.write(bytes, position);
        } catch (error) {
          throw writeFailure(name, error);
        }
      },
      async finish() {},
    };
  }

  async commit(): Promise<void> {
    for (let next = this.#open[0]; next; next = this.#open[0]) {
      const { name, writer } = next;
      await writer.close().catch((error: unknown) => {
        throw writeFailure(name, error);
      });
      this.#closed.push(next);
      this.#open.shift();
    }
    this.#closed.length = 0;
  }

  async abort(reason: unknown): Promise<void> {
    await this.#opening.end();
    for (const { writer } of this.#open) await writer.abort(reason).catch(() => {});
    // The first file in a folder made it.
    const files = [...this.#closed.splice(0), ...this.#open.splice(0)].reverse();
    for (const file of files) await file.remove().catch(() => {});
  }
}

const ifMissing = (error: unknown): null => {
  if ((error as { name?: unknown } | null)?.name === 'NotFoundError') return null;
  throw error;
};

/** A file in a folder of handles; null if it, or its folder, is missing. */
const existing = (target: FileSystemDirectoryHandle, name: string): Promise<FileSystemFileHandle | null> =>
  placeIn(target, name, false)
    .then(({ folder, file }) => folder.getFileHandle(file))
    .catch(ifMissing);

async function sizeIn(target: FileSystemFileHandle | FileSystemDirectoryHandle, name: string): Promise<number> {
  const found = isDirectoryHandle(target) && (await existing(target, name));
  return found ? (await found.getFile()).size : 0;
}

/** Opens a file for writing. If that fails, a file that was not there before is gone again. */
async function openFile(target: FileSystemFileHandle | FileSystemDirectoryHandle, name: string): Promise<HandleFile> {
  const isNew = isDirectoryHandle(target) && (await existing(target, name)) === null;
  const hasFolder = isDirectoryHandle(target) && (await placeIn(target, name, false).catch(ifMissing)) !== null;
  const remove = async () => {
    if (!isNew || !isDirectoryHandle(target)) return;
    const { folder, file } = await placeIn(target, name, false);
    await folder.removeEntry(file).catch(ifMissing);
    if (!hasFolder) await target.removeEntry(name.split('/')[0] ?? '');
  };
  try {
    const place = isDirectoryHandle(target) && (await placeIn(target, name, true));
    const handle = place ? await place.folder.getFileHandle(place.file, { create: true }) : target;
    const isEmpty = (await (handle as FileSystemFileHandle).getFile()).size === 0;
    return { name, remove, writer: await writerOf(handle as AnyHandle, isEmpty) };
  } catch (error) {
    await remove().catch(() => {});
    throw error;
  }
}

/** Opens a target that is not a path. Errors: target-invalid. */
export function openTarget(target: Target, overwrite: boolean): OutputTarget {
  if (isObject(target) && 'getWriter' in target) {
    if (target.locked) throw failure('target-invalid', 'target', 'this WritableStream is locked by another writer');
    return new StreamTarget(false, async () => target);
  }
  if (isFileHandle(target) || isDirectoryHandle(target)) return new HandleTarget(target, overwrite);
  if (isObject(target) && 'write' in target && typeof target.write === 'function') {
    return new StreamTarget(true, (name) => target.write(name));
  }
  const detail = 'not a target; give a WritableStream, a file or folder handle, {write(name)}, or in Node a path';
  throw failure('target-invalid', 'target', detail);
}
