// The journal of a resumable run, `wasmquant-run.json` in its partial folder: its work, and digests of finished files.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isInside, replacedName } from './node_placement.js';
import type { Work } from './target.js';

export const journalName = 'wasmquant-run.json';

export interface KeptFile {
  name: string;
  bytes: number;
  sha256: string;
  note: string;
}

export interface Journal {
  library: string;
  inputs: string[];
  plan: string;
  files: KeptFile[];
}

export const beginJournal = (work: Work): Journal => ({ ...work, files: [] });

/** The first difference between the present run and the journal; null for the same work. */
export function differenceOf(journal: Journal, now: Journal): string | null {
  if (journal.library !== now.library) return `wasmquant ${journal.library} (this is ${now.library})`;
  for (const [at, input] of journal.inputs.entries())
    if (input !== now.inputs[at]) return `another input (${input}; now ${now.inputs[at] ?? 'nothing'})`;
  if (journal.inputs.length !== now.inputs.length) return 'fewer inputs';
  return journal.plan === now.plan ? null : 'another config, calibration or format';
}

/** Null if there is no complete journal. */
export async function readJournal(folder: string): Promise<Journal | null> {
  const text = await readFile(join(folder, journalName), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    const journal = JSON.parse(text) as Journal;
    const isWhole =
      typeof journal.library === 'string' &&
      typeof journal.plan === 'string' &&
      Array.isArray(journal.inputs) &&
      Array.isArray(journal.files) &&
      journal.files.every(({ name, note }) => isInside(name) && typeof note === 'string');
    return isWhole ? journal : null;
  } catch {
    return null;
  }
}

/** Replaces the journal atomically, so a killed run leaves the previous one. */
export async function writeJournal(folder: string, journal: Journal): Promise<void> {
  const path = join(folder, journalName);
  const handle = await open(`${path}.new`, 'w');
  try {
    await handle.writeFile(JSON.stringify(journal));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.new`, path);
}

export async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

/** Whether the finished file exists unchanged. */
export async function isIntact(folder: string, { name, bytes, sha256 }: KeptFile): Promise<boolean> {
  try {
    const path = join(folder, name);
    const found = await stat(path);
    return found.isFile() && found.size === bytes && (await digestOf(path)) === sha256;
  } catch {
    return false;
  }
}

/** Keeps only the journal, the finished files it lists, and files of an earlier output. */
export async function removeOthers(partial: string, kept: KeptFile[]): Promise<void> {
  const names = new Set([journalName, replacedName, ...kept.map(({ name }) => name.split(/[/\\]/)[0] ?? '')]);
  for (const name of await readdir(partial))
    if (!names.has(name)) await rm(join(partial, name), { recursive: true, force: true });
}
