// npm run format: clang-format (version 14, whose output the check compares with) and biome, in place.
import { join } from 'node:path';
import { findProgram, installPackages, main, needs, root, run } from './command.mjs';
import { setUp } from './setup.mjs';
import { cppFiles } from './source_files.mjs';

/** clang-format 14, or null. Other versions break lines in other places. */
export function clangFormat() {
  return findProgram('clang-format-14');
}

if (process.argv[1] === import.meta.filename) {
  main(() => {
    setUp();
    const format = clangFormat() ?? (installPackages('clang-format-14') ? clangFormat() : null);
    if (!format) throw needs('clang-format-14 is missing: install the package clang-format-14');
    run(format, ['-i', ...cppFiles()]);
    run(join(root, 'node_modules/.bin/biome'), ['check', '--write', '.']);
  });
}
