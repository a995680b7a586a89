// Paths as targets. Output goes to a partial folder (node_partial.ts) next to its final place or in the existing
// folder, is flushed, and renamed once complete: a new folder as a whole, else file by file (node_placement.ts). The next
// run with the same output removes or resumes (node_journal.ts) what a killed one left.

import { access, type FileHandle, mkdir, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { failure, textOf } from '../api/errors.js';
import { outputFormatsOf } from '../api/formats.js';
import {
  beginJournal,
  differenceOf,
  digestOf,
  isIntact,
  type Journal,
  journalName,
  readJournal,
  removeOthers,
  writeJournal,
} from './node_journal.js';
import { OpenFiles } from './node_open_files.js';
import {
  abandonedPartials,
  claimPartial,
  isPartial,
  leavePartial,
  makePartial,
  removeAbandoned,
  undoAbandoned,
} from './node_partial.js';
import { holdsReplaced, placeFiles } from './node_placement.js';
import { isIndexName, wholeName } from './part_name.js';
import {
  type ExistingFiles,
  type OutputFile,
  type OutputTarget,
  type TargetUse,
  type Work,
  writeFailure,
} from './target.js';

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

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

/** Bytes written between two flushes of a file. */
const flushBytes = 16 * 1024 * 1024;

/** Flushes a file while it is written, to avoid a long wait at the end. */
class Flushing {
  readonly #files: OpenFiles;
  readonly #path: string;
  #due = 0;
  #running: Promise<void> | null = null;
  /** Kept here because only one flush reports it. */
  #failed: { error: unknown } | null = null;

  constructor(files: OpenFiles, path: string) {
    this.#files = files;
    this.#path = path;
  }

  written(bytes: number): void {
    this.#due += bytes;
    if (this.#due < flushBytes || this.#running || this.#failed) return;
    this.#due = 0;
    this.#running = this.#files
      .use(this.#path, (handle) => handle.datasync())
      .catch((error: unknown) => {
        this.#failed = { error };
      })
      .finally(() => {
        this.#running = null;
      });
  }

  async finish(): Promise<void> {
    await this.#running;
    if (this.#failed) throw this.#failed.error;
    await this.#files.use(this.#path, (handle) => handle.sync());
    await this.#files.close(this.#path);
  }
}

/** Weight files of an earlier output with the same stem that the new output lacks. */
export function leftovers(names: string[], written: Set<string>): string[] {
  const isWeight = (name: string) => isIndexName(name) || name.endsWith('.safetensors');
  const models = new Set([...written].filter(isWeight).map(wholeName));
  return names.filter((name) => isWeight(name) && models.has(wholeName(name)) && !written.has(name));
}

/** shared-folder: other runs write to it too; only listed files are this run's, and the folder stays. added-to: it has
 * other files, which stay. */
type Kind = 'file' | 'new-folder' | 'old-folder' | 'shared-folder' | 'added-to';

/** What a folder holds already. */
function filesIn(folder: string): ExistingFiles {
  const listed = async (path: string, prefix: string) => {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => prefix + name);
  };
  return {
    async names(inner) {
      const names = await listed(folder, '');
      for (const name of inner) names.push(...(await listed(join(folder, name), `${name}/`)));
      return names;
    },
    read: (name) => readFile(join(folder, name)).catch(() => null),
  };
}

class PathTarget implements OutputTarget {
  readonly isFolder: boolean;
  readonly isPositioned = true;
  readonly fileName: string | null;
  readonly takesData = true;
  readonly takesFolders: boolean;
  readonly existing?: ExistingFiles;
  readonly #final: string;
  readonly #kind: Kind;
  /** Parent of the partial folder: next to the output, or the existing folder. */
  readonly #place: string;
  readonly #overwrite: boolean;
  readonly #inputs: string[];
  /** Folders that were created, outermost first. */
  readonly #made: string[];
  readonly #files = new OpenFiles();
  /** Existing files that this run may replace, by final path. */
  #replaced: ReadonlySet<string> = new Set();
  /** Paths of created files. */
  readonly #created: string[] = [];
  /** The folder that the names of files are relative to. */
  readonly #root: string;
  #partial: string | null = null;
  /** Of a resumable run. */
  #journal: Journal | null = null;
  /** Whether the folder has to hold the very files of this run already: it may have ended, and not have said so. */
  readonly #isAgain: boolean;

  constructor(final: string, kind: Kind, made: string[], overwrite: boolean, inputs: string[] = [], isAgain = false) {
    this.#isAgain = isAgain;
    this.isFolder = kind !== 'file';
    this.takesFolders = this.isFolder;
    if (this.isFolder) this.existing = filesIn(final);
    this.fileName = kind === 'file' ? basename(final) : null;
    this.#final = final;
    this.#root = this.isFolder ? final : dirname(final);
    this.#kind = kind;
    this.#place = kind === 'file' || kind === 'new-folder' ? dirname(final) : final;
    this.#made = made;
    this.#overwrite = overwrite;
    this.#inputs = inputs;
  }

  /** Removes abandoned folders and makes the partial folder. */
  async begin(): Promise<string> {
    await removeAbandoned(this.#place, basename(this.#final));
    this.#partial = await makePartial(this.#place, basename(this.#final));
    return this.#partial;
  }

  /** Final path; external data goes next to a single file. Errors: target-invalid for paths that lead elsewhere. */
  #finalOf(name: string): string {
    if (!this.isFolder) return name === `${this.fileName}_data` ? join(dirname(this.#final), name) : this.#final;
    const final = join(this.#final, name);
    const inside = relative(this.#final, final);
    if (inside === '' || isAbsolute(name) || inside.split(/[\\/]/).includes('..'))
      throw failure('target-invalid', name, 'is not the name of a file inside the target');
    return final;
  }

  /** The path itself was checked when it was opened. */
  async check(names: string[], replaced: ReadonlySet<string> = new Set()): Promise<void> {
    this.#replaced = new Set([...replaced].map((name) => this.#finalOf(name)));
    if (this.#isAgain)
      for (const name of names)
        if (!(await exists(this.#finalOf(name)))) throw otherFiles(this.#final, `without ${name}`);
    if (this.#kind === 'new-folder' || this.#kind === 'old-folder') return;
    for (const final of new Set(names.map((name) => this.#finalOf(name)))) {
      await refuseInput(final, this.#inputs);
      await this.#refuseExisting(final);
    }
  }

  async #refuseExisting(final: string): Promise<void> {
    if (!this.#overwrite && !this.#replaced.has(final)) await refuseExisting(final);
  }

  async resume(work: Work): Promise<Map<string, string>> {
    if (!this.isFolder) throw failure('argument-invalid', 'resume', 'a single file is not resumed; give a folder');
    const now = beginJournal(work);
    const name = basename(this.#final);
    try {
      for (const path of await abandonedPartials(this.#place, name)) {
        const journal = await readJournal(path);
        if (journal === null || this.#partial !== null) continue;
        const other = differenceOf(journal, now);
        if (other !== null) {
          const detail = `${path} belongs to an interrupted run with ${other}; run without resume to start again`;
          throw failure('target-invalid', this.#final, detail);
        }
        const claimed = await claimPartial(path, this.#place, name);
        if (claimed === null) continue;
        this.#partial = claimed;
        for (const file of journal.files) if (await isIntact(claimed, file)) now.files.push(file);
        await removeOthers(claimed, now.files);
      }
      if (this.#partial === null) await this.begin();
      this.#journal = now;
      await this.#saveJournal();
      await removeAbandoned(this.#place, name);
    } catch (error) {
      throw writeFailure(this.#final, error);
    }
    return new Map(now.files.map((file) => [file.name, file.note]));
  }

  /** Serialized: two files may finish at the same time. */
  keep(name: string, note: string): Promise<void> {
    this.#keeping = this.#keeping.then(() => this.#keep(name, note));
    return this.#keeping;
  }

  #keeping: Promise<void> = Promise.resolve();
  /** After an abort, the journal belongs to the next run. */
  #isOver = false;
  async #keep(name: string, note: string): Promise<void> {
    if (this.#isOver || !this.#journal || this.#partial === null) return;
    const path = join(this.#partial, name);
    try {
      const file = { name, bytes: (await stat(path)).size, sha256: await digestOf(path), note };
      if (this.#isOver) return;
      this.#journal.files.push(file);
      await this.#saveJournal();
    } catch (error) {
      throw writeFailure(this.#finalOf(name), error);
    }
  }

  #saving: Promise<void> = Promise.resolve();
  #saveJournal(): Promise<void> {
    const [folder, journal] = [this.#partial, this.#journal];
    if (folder && journal) this.#saving = this.#saving.then(() => writeJournal(folder, journal));
    return this.#saving;
  }

  /** Files being created, settled or not: an abort waits for them, because it removes what they make. */
  readonly #creating: Promise<unknown>[] = [];

  create(name: string, bytes: number): Promise<OutputFile> {
    const created = this.#create(name, bytes);
    this.#creating.push(created);
    return created;
  }

  async #create(name: string, bytes: number): Promise<OutputFile> {
    const final = this.#finalOf(name);
    let partial: string;
    try {
      if (this.#isOver) throw new Error('the run has ended');
      if (this.#isAgain && (await stat(final)).size !== bytes) throw otherFiles(this.#final, `with another ${name}`);
      const folder = this.#partial ?? (await this.begin());
      partial = join(folder, this.isFolder ? name : basename(final));
      await mkdir(dirname(partial), { recursive: true });
      await this.#files.create(partial, bytes);
      this.#created.push(partial);
    } catch (error) {
      throw writeFailure(final, error);
    }
    const attempt = (step: Promise<void>) =>
      step.catch((error: unknown) => {
        throw writeFailure(final, error);
      });
    const files = this.#files;
    const flushing = new Flushing(files, partial);
    return {
      path: partial,
      async write(chunk, offset) {
        await attempt(files.use(partial, (handle) => writeFully(handle, chunk, offset)));
        flushing.written(chunk.byteLength);
      },
      written: (count) => flushing.written(count),
      finish: () => attempt(flushing.finish()),
    };
  }

  async commit(): Promise<void> {
    const partial = this.#partial;
    if (partial === null) return;
    try {
      await this.#files.end();
      const written = this.#created.map((path) => relative(partial, path));
      const kept = this.#journal?.files.map(({ name }) => name) ?? [];
      const names = [...new Set([...written, ...kept])];
      if (this.#isAgain) {
        await this.#compare(partial, names);
        await rm(partial, { recursive: true, force: true });
      } else if (this.#kind === 'new-folder') {
        await rm(join(partial, journalName), { force: true });
        await rename(partial, this.#final);
      } else {
        const finals = names.map((name) => join(this.#root, name));
        for (const final of finals) await this.#refuseExisting(final);
        for (const final of finals) {
          await mkdir(dirname(final), { recursive: true });
          await this.#refuseLinked(final);
        }
        await placeFiles(partial, this.#root, names, await this.#leftovers(names));
        await rm(partial, { recursive: true, force: true });
      }
      leavePartial(partial);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (this.#kind === 'new-folder' && (code === 'ENOTEMPTY' || code === 'EEXIST'))
        throw failure(
          'target-exists',
          this.#final,
          'was created by another run in the meantime; choose another name',
          error,
        );
      throw writeFailure(this.#final, error);
    }
  }

  /** Errors: target-exists if a file differs from the one that is there; then nothing of this run is kept. */
  async #compare(partial: string, names: string[]): Promise<void> {
    for (const name of names) {
      if ((await digestOf(join(partial, name))) === (await digestOf(this.#finalOf(name)))) continue;
      if (this.#journal) this.#journal.files = [];
      throw otherFiles(this.#final, `with another ${name}`);
    }
  }

  /** Refuses folders inside the target that are links out of it. */
  async #refuseLinked(final: string): Promise<void> {
    if (!this.isFolder || dirname(final) === this.#final) return;
    const inside = relative(await realpath(this.#final), await realpath(dirname(final)));
    if (isAbsolute(inside) || inside.split(/[\\/]/).includes('..'))
      throw failure('target-invalid', dirname(final), 'is a link to a folder outside the target');
  }

  async abort(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled([...this.#creating, this.#keeping, this.#saving]);
    await this.#files.end().catch(() => {});
    const kept = this.#journal?.files ?? [];
    if (this.#partial !== null) {
      if (kept.length > 0) await removeOthers(this.#partial, kept).catch(() => {});
      else if (!(await holdsReplaced(this.#partial)))
        await rm(this.#partial, { recursive: true, force: true }).catch(() => {});
      leavePartial(this.#partial);
    }
    if (kept.length > 0) return;
    for (const folder of [...this.#made].reverse()) await rmdir(folder).catch(() => {});
  }

  /** Old shards and indexes, which would be read together with the new files. */
  async #leftovers(names: string[]): Promise<string[]> {
    if (this.#kind !== 'old-folder') return [];
    return leftovers(await readdir(this.#final), new Set(names));
  }
}

const otherFiles = (path: string, what: string) =>
  failure(
    'target-exists',
    path,
    `is a folder ${what}, so not this run's output; choose another name or pass overwrite (--force)`,
  );

async function refuseExisting(path: string): Promise<void> {
  if (await exists(path))
    throw failure('target-exists', path, 'exists already; choose another name or pass overwrite (--force)');
}

/** Device and inode, which a place has under every name: links, and folders that are mounted twice. */
async function identityOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found ? `${found.dev}:${found.ino}` : resolve(path);
}

async function refuseInput(path: string, inputs: string[]): Promise<void> {
  const target = await identityOf(path);
  for (const input of inputs) {
    const source = await realpath(input).catch(() => resolve(input));
    if (target === (await identityOf(source)) || target === (await identityOf(dirname(source)))) {
      throw failure('target-invalid', path, `holds the input ${input}; choose another place for the output`);
    }
  }
}

/** Opens a path: a file if it has an output extension, else a folder (also with a trailing slash). `inputs`: paths to
 * read. Errors: target-exists, target-invalid. */
export async function openPathTarget(
  path: string,
  overwrite: boolean,
  inputs: string[],
  { resumes, adds }: Omit<TargetUse, 'isShared'> = { resumes: false, adds: false },
): Promise<OutputTarget> {
  if (path === '') throw failure('target-invalid', 'target', 'the path is empty');
  const final = resolve(path);
  await refuseInput(final, inputs);
  try {
    for (const root of [dirname(final), final]) await undoAbandoned(root, basename(final), root);
  } catch (error) {
    throw failure('target-invalid', path, `a killed run's files cannot be put back: ${textOf(error)}`, error);
  }
  const found = await stat(final).catch(() => null);
  const isFolder = found ? found.isDirectory() : /[/\\]$/.test(path) || outputFormatsOf(path).length === 0;
  try {
    if (!isFolder) {
      if (found && !overwrite) await refuseExisting(final);
      if (found && !found.isFile()) throw failure('target-invalid', path, 'is neither a file nor a folder');
      return new PathTarget(final, 'file', await makeFolders(dirname(final)), overwrite, inputs);
    }
    if (found) {
      const isEmpty = (await readdir(final)).every((name) => isPartial(name));
      if (adds && !isEmpty) return new PathTarget(final, 'added-to', [], overwrite, inputs);
      const isAgain = resumes && !overwrite && !isEmpty;
      if (!overwrite && !isEmpty && !isAgain)
        throw failure('target-exists', path, 'is a folder with files; choose another name or pass overwrite (--force)');
      return new PathTarget(final, 'old-folder', [], overwrite, [], isAgain);
    }
    const target = new PathTarget(final, 'new-folder', await makeFolders(dirname(final)), overwrite);
    // Fail before planning if the place is not writable.
    if (!resumes) await target.begin();
    return target;
  } catch (error) {
    if (error instanceof Error && error.name === 'QuantizationError') throw error;
    throw failure('target-invalid', path, `cannot be written: ${textOf(error)}`, error);
  }
}

/** Opens or creates a folder that other runs write to at the same time. Errors: target-exists (it contains a whole
 * model, or the path is a file), target-invalid. */
export async function openSharedFolder(path: string, overwrite: boolean, inputs: string[]): Promise<OutputTarget> {
  const final = resolve(path);
  await refuseInput(final, inputs);
  const found = await stat(final).catch(() => null);
  if (path === '' || (found ? !found.isDirectory() : outputFormatsOf(path).length > 0))
    throw failure('target-invalid', path, 'is not a folder; parts of a run are written to a folder');
  if (await exists(join(final, 'config.json')))
    throw failure('target-exists', path, 'already holds a whole model; choose another name, or remove it first');
  await mkdir(final, { recursive: true }).catch((error: unknown) => {
    throw failure('target-invalid', path, `cannot be written: ${textOf(error)}`, error);
  });
  return new PathTarget(final, 'shared-folder', [], overwrite, inputs);
}
