// Paths as targets. Output is written into `<name>.wasmquant-<machine>-<pid>-<random>.partial` beside its final place,
// flushed to the disk, and renamed when all files are complete: a new folder as a whole, files of an existing folder one by
// one. Until then, whatever stands there stays as it is. What a killed process left is removed by the next run with the
// same output.

import { createHash, randomBytes } from 'node:crypto';
import { access, type FileHandle, mkdir, open, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { failure, textOf } from './errors.js';
import { type OutputFile, type OutputTarget, writeFailure } from './target.js';

interface PendingFile {
  partial: string;
  final: string;
  handle: FileHandle;
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
const canonical = (path: string) => realpath(path).catch(() => resolve(path));
/** Folders are shared among machines, process numbers are not. */
const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const partialName = (name: string) =>
  `${name}.wasmquant-${machine}-${process.pid}-${randomBytes(4).toString('hex')}.partial`;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

/** Removes what processes of this machine that are no more left in `folder` of an output called `name`. */
async function removeAbandoned(folder: string, name: string): Promise<void> {
  const begin = `${name}.wasmquant-${machine}-`;
  for (const found of await readdir(folder).catch(() => [])) {
    const owner = found.startsWith(begin)
      ? /^(\d+)-[0-9a-f]{8}\.partial$/.exec(found.slice(begin.length))?.[1]
      : undefined;
    if (owner === undefined || isRunning(Number(owner))) continue;
    await rm(join(folder, found), { recursive: true, force: true }).catch(() => {});
  }
}

/** Makes missing folders; returns those made, outermost first. */
async function makeFolders(path: string): Promise<string[]> {
  const outermost = await mkdir(path, { recursive: true });
  if (outermost === undefined) return [];
  const made: string[] = [];
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    made.unshift(folder);
    if (folder === resolve(outermost)) return made;
  }
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done, offset + done);
    done += bytesWritten;
  }
}

/** Weight files of an earlier output with the same stem, which the new output does not have. */
function leftovers(names: string[], written: Set<string>): string[] {
  const stems = [...written]
    .map((name) => /^(.+?)(-\d{5}-of-\d{5})?\.safetensors$/.exec(name)?.[1])
    .filter((stem) => stem !== undefined);
  return names.filter((name) => {
    const stem = /^(.+?)(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?$/.exec(name)?.[1];
    return stem !== undefined && stems.includes(stem) && !written.has(name);
  });
}

class PathTarget implements OutputTarget {
  readonly isFolder: boolean;
  readonly isPositioned = true;
  readonly fileName: string | null;
  readonly takesData = true;
  readonly takesFolders: boolean;
  /** Final file or folder. */
  readonly #final: string;
  /** Folder that files are created in: the final one, or a partial one beside it. */
  readonly #folder: string;
  readonly #isNewFolder: boolean;
  readonly #overwrite: boolean;
  readonly #inputs: string[];
  /** Folders made on the way, outermost first. */
  readonly #made: string[];
  readonly #files: PendingFile[] = [];

  constructor(
    final: string,
    kind: 'file' | 'new-folder' | 'old-folder',
    folder: string,
    made: string[],
    overwrite: boolean,
    inputs: string[] = [],
  ) {
    this.isFolder = kind !== 'file';
    this.takesFolders = this.isFolder;
    this.fileName = kind === 'file' ? basename(final) : null;
    this.#final = final;
    this.#folder = folder;
    this.#isNewFolder = kind === 'new-folder';
    this.#made = made;
    this.#overwrite = overwrite;
    this.#inputs = inputs;
  }

  /** Of a single file, external data stand beside it. */
  #finalOf(name: string): string {
    const isBeside = !this.isFolder && name === `${this.fileName}_data`;
    return this.isFolder || isBeside ? join(this.#folder, name) : this.#final;
  }

  /** What stands at the path itself was refused when it was opened. */
  async check(names: string[]): Promise<void> {
    if (this.isFolder) return;
    for (const final of new Set(names.map((name) => this.#finalOf(name)))) {
      await refuseInput(final, this.#inputs);
      if (!this.#overwrite) await refuseExisting(final);
    }
  }

  async create(name: string, bytes: number): Promise<OutputFile> {
    const final = this.#finalOf(name);
    const folder = dirname(final);
    const partial = this.#isNewFolder ? final : join(folder, partialName(basename(final)));
    let handle: FileHandle;
    try {
      if (folder !== this.#folder) this.#made.push(...(await makeFolders(folder)));
      if (!this.#isNewFolder) await removeAbandoned(folder, basename(final));
      handle = await open(partial, 'wx');
      this.#files.push({ partial, final, handle });
      await handle.truncate(bytes);
    } catch (error) {
      throw writeFailure(final, error);
    }
    const attempt = (step: Promise<void>) =>
      step.catch((error: unknown) => {
        throw writeFailure(final, error);
      });
    return {
      path: partial,
      write: (chunk, offset) => attempt(writeFully(handle, chunk, offset)),
      finish: () => attempt(handle.sync()),
    };
  }

  async commit(): Promise<void> {
    try {
      for (const { handle } of this.#files) await handle.close();
      if (this.#isNewFolder) {
        await rename(this.#folder, this.#final);
      } else {
        if (!this.#overwrite) for (const { final } of this.#files) await refuseExisting(final);
        for (const { partial, final } of this.#files) await rename(partial, final);
        if (this.isFolder) await this.#removeLeftovers();
      }
    } catch (error) {
      throw writeFailure(this.#final, error);
    }
  }

  async abort(): Promise<void> {
    for (const { partial, handle } of this.#files) {
      await handle.close().catch(() => {});
      await rm(partial, { force: true }).catch(() => {});
    }
    if (this.#isNewFolder) await rm(this.#folder, { recursive: true, force: true }).catch(() => {});
    for (const folder of [...this.#made].reverse()) await rmdir(folder).catch(() => {});
  }

  /** A shard or index of the earlier output would be read together with the new files. */
  async #removeLeftovers(): Promise<void> {
    const written = new Set(this.#files.map(({ final }) => relative(this.#folder, final)));
    for (const name of leftovers(await readdir(this.#folder), written)) await rm(join(this.#folder, name));
  }
}

async function refuseExisting(path: string): Promise<void> {
  if (await exists(path))
    throw failure('target-exists', path, 'exists already; choose another name or pass overwrite (--force)');
}

async function refuseInput(path: string, inputs: string[]): Promise<void> {
  const target = await canonical(path);
  for (const input of inputs) {
    const source = await canonical(input);
    if (source === target || dirname(source) === target) {
      throw failure('target-invalid', path, `holds the input ${input}; choose another place for the output`);
    }
  }
}

/**
 * Opens a path for output: a file when it ends in `.safetensors`, `.gguf` or `.onnx`, else a folder (also with a slash at the end, or when
 * it is one already). `inputs` = paths that are read. Errors: target-exists, target-invalid.
 */
export async function openPathTarget(path: string, overwrite: boolean, inputs: string[]): Promise<OutputTarget> {
  if (path === '') throw failure('target-invalid', 'target', 'the path is empty');
  const final = resolve(path);
  await refuseInput(final, inputs);
  const found = await stat(final).catch(() => null);
  const isFolder = found ? found.isDirectory() : /[/\\]$/.test(path) || !/\.(safetensors|gguf|onnx)$/i.test(path);
  try {
    if (!isFolder) {
      if (found && !overwrite) await refuseExisting(final);
      if (found && !found.isFile()) throw failure('target-invalid', path, 'is neither a file nor a folder');
      return new PathTarget(final, 'file', dirname(final), await makeFolders(dirname(final)), overwrite, inputs);
    }
    if (found) {
      if (!overwrite && (await readdir(final)).length > 0) {
        throw failure('target-exists', path, 'is a folder with files; choose another name or pass overwrite (--force)');
      }
      return new PathTarget(final, 'old-folder', final, [], overwrite);
    }
    const made = await makeFolders(dirname(final));
    await removeAbandoned(dirname(final), basename(final));
    const partial = join(dirname(final), partialName(basename(final)));
    await mkdir(partial);
    return new PathTarget(final, 'new-folder', partial, made, overwrite);
  } catch (error) {
    if (error instanceof Error && error.name === 'QuantizationError') throw error;
    throw failure('target-invalid', path, `cannot be written: ${textOf(error)}`, error);
  }
}
