// Partial outputs: folders `<name>.wasmquant-<machine>-<pid>-<random>.partial`, one per run, for all files until the
// run is complete. If the process no longer exists, the next run to the same place removes or resumes its folder.

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { holdsReplaced, undoPlacement } from './node_placement.js';

/** Machines may share folders, but not process ids. */
const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
/** Partial folders of this process's runs. */
const alive = new Set<string>();

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

const ownName = (name: string) =>
  `${name}.wasmquant-${machine}-${process.pid}-${randomBytes(4).toString('hex')}.partial`;

/** Makes a run's partial folder in `folder`, for an output called `name`. */
export async function makePartial(folder: string, name: string): Promise<string> {
  const path = join(folder, ownName(name));
  await mkdir(path);
  alive.add(path);
  return path;
}

/** Call when the run is over; what is left there counts as abandoned. */
export function leavePartial(path: string): void {
  alive.delete(path);
}

export const isPartial = (name: string) => /\.wasmquant-[0-9a-f]{8}-\d+-[0-9a-f]{8}\.partial$/.test(name);

/** Partial folders in `folder` for `name`, left by processes of this machine that no longer exist. */
export async function abandonedPartials(folder: string, name: string): Promise<string[]> {
  const begin = `${name}.wasmquant-${machine}-`;
  const found: string[] = [];
  for (const entry of await readdir(folder).catch(() => [])) {
    const owner = entry.startsWith(begin) ? /^(\d+)-[0-9a-f]{8}\.partial$/.exec(entry.slice(begin.length))?.[1] : null;
    if (owner == null) continue;
    const path = join(folder, entry);
    // Processes in containers may reuse the same id.
    const isAlive = Number(owner) === process.pid ? alive.has(path) : isRunning(Number(owner));
    if (!isAlive) found.push(path);
  }
  return found;
}

/** Puts back what killed runs had begun to replace in `root`. */
export async function undoAbandoned(folder: string, name: string, root: string): Promise<void> {
  for (const path of await abandonedPartials(folder, name)) await undoPlacement(path, root);
}

/** Removes what killed runs left, but for files of an earlier output. */
export async function removeAbandoned(folder: string, name: string): Promise<void> {
  for (const path of await abandonedPartials(folder, name))
    if (!(await holdsReplaced(path))) await rm(path, { recursive: true, force: true }).catch(() => {});
}

/** Takes over an abandoned folder; null if another run was faster. */
export async function claimPartial(path: string, folder: string, name: string): Promise<string | null> {
  const own = join(folder, ownName(name));
  alive.add(own);
  try {
    await rename(path, own);
    return own;
  } catch {
    alive.delete(own);
    return null;
  }
}
