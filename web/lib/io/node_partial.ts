// Partial outputs: folders `<name>.wasmquant-<machine>-<pid>-<start><random>.partial`, one per run, for all files until
// the run is complete. If the process no longer exists, the next run to the same place removes or resumes its folder.

import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { holdsReplaced, undoPlacement } from './node_placement.js';

const digest = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);

/** The text of a file of the system; "" where there is none. */
function systemText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Linux's number of the namespace in which process ids count; "" elsewhere. */
function namespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** Of every machine: PROC_PID_INIT_INO of Linux. Other namespaces end with their containers, or with the machine. */
const firstNamespace = 'pid:[4026531836]';

/** Where process ids mean the same processes. Folders may be shared by machines, and by containers that have one name:
 * of a process elsewhere nothing can be known, and its folder is left alone. */
function whereIdsCount(): string {
  const ids = namespace();
  const boot = systemText('/proc/sys/kernel/random/boot_id');
  return digest(hostname(), ids, ids === firstNamespace ? systemText('/etc/machine-id') || boot : boot);
}

/**
 * What tells a process from a later one with its id: its boot and start time (fields 3 and 22 of /proc/<pid>/stat, after the
 * name in parentheses). Null if it has ended, which a zombie has; "" if the system does not say.
 */
function startOf(pid: number): string | null {
  const boot = systemText('/proc/sys/kernel/random/boot_id');
  if (systemText('/proc/self/stat') === '' || boot === '') return isRunning(pid) ? '' : null;
  const text = systemText(`/proc/${pid}/stat`);
  const [state = '', ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return text === '' || /^[ZXx]$/.test(state) ? null : digest(boot, fields[18] ?? '');
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

const machine = whereIdsCount();
const unknownStart = '00000000';
const ownStart = startOf(process.pid) || unknownStart;
/** Partial folders of runs of this thread: those under way, and those that are over. */
const alive = new Set<string>();
const left = new Set<string>();

/** Bytes of an output's name in that of its partial folder; file systems allow 255 in all. */
const mostNameBytes = 180;

function beginOf(name: string): string {
  const bytes = Buffer.from(name);
  return bytes.length <= mostNameBytes ? name : `${bytes.toString('hex', 0, 16)}-${digest(name)}`;
}

const ownName = (name: string) =>
  `${beginOf(name)}.wasmquant-${machine}-${process.pid}-${ownStart}${randomBytes(4).toString('hex')}.partial`;

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
  left.add(path);
}

export const isPartial = (name: string) => /\.wasmquant-[0-9a-f]{8}-\d+-[0-9a-f]{16}\.partial$/.test(name);

function isAlive(path: string, pid: number, start: string): boolean {
  if (pid === process.pid && start === ownStart) return start === unknownStart ? alive.has(path) : !left.has(path); // another thread may have made it
  const found = startOf(pid);
  return found === null ? false : found === '' || found === start;
}

/** Partial folders in `folder` for `name`, left by processes of this machine that no longer exist. */
export async function abandonedPartials(folder: string, name: string): Promise<string[]> {
  const begin = `${beginOf(name)}.wasmquant-${machine}-`;
  const found: string[] = [];
  for (const entry of await readdir(folder).catch(() => [])) {
    if (!entry.startsWith(begin)) continue;
    const [, pid, start] = /^(\d+)-([0-9a-f]{8})[0-9a-f]{8}\.partial$/.exec(entry.slice(begin.length)) ?? [];
    if (pid === undefined || start === undefined) continue;
    const path = join(folder, entry);
    if (!isAlive(path, Number(pid), start)) found.push(path);
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
