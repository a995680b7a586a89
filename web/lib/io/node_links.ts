// Links in a model's folder. What a link leads to is copied into outputs, which may be published, so a stranger's folder
// must not name files elsewhere.

import type { Dirent } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { weightFilePattern } from '../api/formats.js';

const isWithin = (folder: string, path: string) => {
  const inside = relative(folder, path);
  return !isAbsolute(inside) && inside.split(/[\\/]/)[0] !== '..';
};

/** Hugging Face's cache: `snapshots/REVISION` holds links to `blobs`. */
function blobsOf(folder: string): string | null {
  for (let at = folder; dirname(at) !== at; at = dirname(at))
    if (basename(dirname(at)) === 'snapshots') return join(dirname(dirname(at)), 'blobs');
  return null;
}

/** Entries of the folder `path` that are links out of it, and where they lead. Links may lead to the blobs of the same
 * repository, and to folders that weights are linked from. Broken links are not among them. */
export async function linksOutOf(path: string, entries: readonly Dirent[]): Promise<Map<string, string>> {
  const outside = new Map<string, string>();
  const links = entries.filter((entry) => entry.isSymbolicLink());
  if (links.length === 0) return outside;
  const folder = await realpath(path);
  const allowed = [folder];
  const blobs = blobsOf(folder);
  if (blobs !== null) allowed.push(blobs);
  for (const { name } of links) {
    const real = await realpath(join(path, name)).catch(() => null);
    if (real === null) continue;
    // The destination's name, too: else a decoy opens any folder.
    if (weightFilePattern.test(name) && weightFilePattern.test(real)) allowed.push(dirname(real));
    else outside.set(name, real);
  }
  for (const [name, real] of outside) if (allowed.some((within) => isWithin(within, real))) outside.delete(name);
  return outside;
}
