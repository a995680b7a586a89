// Bundles the library into one file: dist/service_worker.js for hosts that forbid import(), dist/bundle.js for pages without a bundler.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'rolldown';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** The module's own JavaScript, which the C++ build makes. */
const engine = {
  name: 'engine',
  resolveId: (source) => (source.endsWith('/engine.js') ? path('../../dist/engine.js') : null),
};

const oneFile = (name, output) => ({
  input: path(`./${name}.ts`),
  platform: 'browser',
  transform: { target: 'es2022' },
  plugins: [engine],
  output: { file: path(`../../dist/${name}.js`), format: 'esm', codeSplitting: false, ...output },
});

export default defineConfig([oneFile('service_worker'), oneFile('bundle', { minify: true })]);
