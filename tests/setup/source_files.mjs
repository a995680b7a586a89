// Lists files of the checkout, as paths from its top.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './command.mjs';

/** Files below `folder` whose name matches, sorted; none when the folder is missing. */
export function filesBelow(folder, pattern) {
  let entries;
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true, recursive: true });
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

/** Every C++ source and header. */
export function cppFiles() {
  return ['src', 'bindings', 'tests'].flatMap((folder) => filesBelow(folder, /\.(cpp|h)$/));
}
