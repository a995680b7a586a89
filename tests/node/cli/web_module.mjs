// Modules of the command line and the page, which dist/ holds only as whole programs.
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { scratchFolder } from '../scratch.mjs';

const web = join(import.meta.dirname, '../../../web');

/** `path`: in web/. Of the library, modules of the command line may only use types; `wasmquant` is the built library. */
export async function moduleOf(t, path) {
  const bundle = await rolldown({
    input: join(web, path),
    platform: 'node',
    logLevel: 'silent',
    external: /\/(lib|dist)\//,
    tsconfig: false,
    resolve: { alias: { wasmquant: join(web, '../dist/index.js') } },
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  });
  const file = join(scratchFolder(t), 'module.mjs');
  await bundle.write({ file, format: 'esm' });
  await bundle.close();
  return import(file);
}
