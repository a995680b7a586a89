// Partial outputs: folders called `<name>.wasmquant-<machine>-<pid>-<random>.partial`, one of each run, which hold all
// that it writes until it is complete. Those of processes that are no more are abandoned: the next run into the same
// place removes them, or takes one up where it is resumed.

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** Folders are shared among machines, process numbers are not. */
const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
/** Those that runs of this process write to. */
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

/** Makes the partial folder of a run in `folder`, of an output called `name`. */
export async function makePartial(folder: string, name: string): Promise<string> {
  const path = join(folder, ownName(name));
  await mkdir(path);
  alive.add(path);
  return path;
}

/** The run is over: what is still there is nobody's. */
export function leavePartial(path: string): void {
  alive.delete(path);
}

/** Whether a name is that of a partial output, of whatever run. */
export const isPartial = (name: string) => /\.wasmquant-[0-9a-f]{8}-\d+-[0-9a-f]{8}\.partial$/.test(name);

/** Paths of what processes of this machine that are no more left in `folder` of an output called `name`. */
export async function abandonedPartials(folder: string, name: string): Promise<string[]> {
  const begin = `${name}.wasmquant-${machine}-`;
  const found: string[] = [];
  for (const entry of await readdir(folder).catch(() => [])) {
    const owner = entry.startsWith(begin) ? /^(\d+)-[0-9a-f]{8}\.partial$/.exec(entry.slice(begin.length))?.[1] : null;
    if (owner == null) continue;
    const path = join(folder, entry);
    // Containers give the same number to each of their processes in turn.
    const isAlive = Number(owner) === process.pid ? alive.has(path) : isRunning(Number(owner));
    if (!isAlive) found.push(path);
  }
  return found;
}

export async function removeAbandoned(folder: string, name: string): Promise<void> {
  for (const path of await abandonedPartials(folder, name))
    await rm(path, { recursive: true, force: true }).catch(() => {});
}

/** Takes an abandoned one over; null when another run was faster. */
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
