// Modules of the command line and the page, which dist/ holds only as whole programs.
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { scratchFolder } from '../scratch.mjs';

const web = join(import.meta.dirname, '../../../web');

/** `path`: in web/. Imports of the library are left out of the bundle, so they must be types. */
export async function moduleOf(t, path) {
  const bundle = await rolldown({
    input: join(web, path),
    platform: 'node',
    logLevel: 'silent',
    external: /\/lib\//,
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  });
  const file = join(scratchFolder(t), 'module.mjs');
  await bundle.write({ file, format: 'esm' });
  await bundle.close();
  return import(file);
}
