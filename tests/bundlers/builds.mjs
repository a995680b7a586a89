// How each bundler builds the application in `app` (index.html, app.js, options.js, work.mjs; node_modules with wasmquant)
// into `out`. Each row: name, `options.js` of that bundler, and the build. `bin` finds a bundler's command.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Bundlers that understand `new URL('./file', import.meta.url)` find the worker and the module by themselves. */
const nothing = 'export const options = {};\n';

/** The others deliver both files as they are told, and the library is told where. */
const beside = `export const options = {
  wasmUrl: new URL('wasmquant.wasm', location.href),
  workerUrl: new URL('worker.js', location.href),
};
`;

const html = '<!doctype html><meta charset="utf-8"><title>app</title><script type="module" src="./app.js"></script>\n';

function placeBeside(app, out) {
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'index.html'), html);
  copyFileSync(join(app, 'node_modules/wasmquant/dist/wasmquant.wasm'), join(out, 'wasmquant.wasm'));
}

export const builds = [
  {
    name: 'Vite',
    optionsFile: nothing,
    build({ app, out, run }) {
      writeFileSync(
        join(app, 'vite.config.mjs'),
        "export default { base: './', build: { target: 'es2022' }, logLevel: 'warn' };\n",
      );
      run('vite', ['build', '--outDir', out]);
    },
  },
  {
    name: 'webpack',
    optionsFile: nothing,
    build({ app, out, run }) {
      writeFileSync(
        join(app, 'webpack.config.mjs'),
        `export default {
  mode: 'production', entry: './app.js', stats: 'errors-warnings', performance: { hints: false },
  output: { path: ${JSON.stringify(out)}, filename: 'app.js', module: true, chunkFormat: 'module' },
  experiments: { outputModule: true },
};
`,
      );
      run('webpack', ['--config', 'webpack.config.mjs']);
      writeFileSync(join(out, 'index.html'), html);
    },
  },
  {
    name: 'esbuild',
    optionsFile: beside,
    build({ app, out, run }) {
      placeBeside(app, out);
      const worker = 'worker=wasmquant/worker';
      const shared = ['--bundle', '--splitting', '--format=esm', '--minify', '--log-level=warning', `--outdir=${out}`];
      run('esbuild', ['app=app.js', worker, ...shared]);
    },
  },
  {
    name: 'Rolldown',
    optionsFile: beside,
    build({ app, out, run }) {
      placeBeside(app, out);
      writeFileSync(
        join(app, 'rolldown.config.mjs'),
        `export default {
  input: { app: './app.js', worker: 'wasmquant/worker' }, platform: 'browser', logLevel: 'warn',
  output: { dir: ${JSON.stringify(out)}, format: 'esm', minify: true },
};
`,
      );
      run('rolldown', ['-c', 'rolldown.config.mjs', '--silent']);
    },
  },
];

export { html };
