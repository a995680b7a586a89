// Moves a run's files from its partial folder to their places, all or none. First, files of an earlier output go to `wasmquant-replaced` in
// the partial folder, then the new ones take their places; a failure puts everything back. A process that is killed in between leaves
// files of one output only, some of them missing, and the next run with the same output puts them back.

import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { failure, textOf } from '../api/errors.js';

/** In the partial folder, while files move: their names, a JSON array. */
const listName = 'wasmquant-placing.json';
export const replacedName = 'wasmquant-replaced';

const found = (path: string) => lstat(path).catch(() => null);

/** Renames a file, into a folder that is made if it is missing. */
export async function move(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
}

/** Names of the files below a folder; none if it is missing. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Whether a relative name stays inside its folder. */
export const isInside = (name: unknown): name is string =>
  typeof name === 'string' && name !== '' && !/^[/\\]|(^|[/\\])\.\.([/\\]|$)|^[a-z]:/i.test(name);

async function listedIn(partial: string): Promise<string[]> {
  try {
    const names: unknown = JSON.parse(await readFile(join(partial, listName), 'utf8'));
    return Array.isArray(names) ? names.filter(isInside) : [];
  } catch {
    return []; // no move had begun
  }
}

/** Whether the partial folder holds files of an earlier output. */
export async function holdsReplaced(partial: string): Promise<boolean> {
  return (await filesBelow(join(partial, replacedName))).length > 0;
}

/** Puts everything back where it was before placeFiles. Does nothing if no move had begun. */
export async function undoPlacement(partial: string, root: string): Promise<void> {
  for (const name of await listedIn(partial)) {
    const arrived = !(await found(join(partial, name))) && (await found(join(root, name)));
    if (arrived) await move(join(root, name), join(partial, name));
  }
  const replaced = join(partial, replacedName);
  for (const name of await filesBelow(replaced)) await move(join(replaced, name), join(root, name));
  await rm(replaced, { recursive: true, force: true });
  await rm(join(partial, listName), { force: true });
}

/** Moves the files `names` of the partial folder to `root`, and `leftovers` out of it; what they replace is in the partial folder
 * afterwards. Errors: target-invalid (a folder has the name of a file). */
export async function placeFiles(partial: string, root: string, names: string[], leftovers: string[]): Promise<void> {
  for (const name of names) {
    const path = join(root, name);
    if ((await found(path))?.isDirectory())
      throw failure(
        'target-invalid',
        path,
        'is a folder, but the output needs a file of that name; move the folder away',
      );
  }
  await writeFile(join(partial, listName), JSON.stringify(names), { flush: true });
  try {
    // config.json, the last to arrive, is the first to leave: no loader takes what is in between for a model.
    for (const name of [...leftovers, ...names].reverse())
      if (await found(join(root, name))) await move(join(root, name), join(partial, replacedName, name));
    for (const name of names) await move(join(partial, name), join(root, name));
  } catch (error) {
    try {
      await undoPlacement(partial, root);
    } catch (again) {
      const detail = `${textOf(error)}; the earlier files are in ${join(partial, replacedName)} (${textOf(again)})`;
      throw failure('write-failed', root, detail, error);
    }
    throw error;
  }
}
