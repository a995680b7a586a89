// Bundles the library into dist/service_worker.js: one file, for hosts that forbid import().
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'rolldown';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** The module's own JavaScript, which the C++ build makes. */
const engine = {
  name: 'engine',
  resolveId: (source) => (source.endsWith('/engine.js') ? path('../../dist/engine.js') : null),
};

export default defineConfig({
  input: path('./service_worker.ts'),
  platform: 'browser',
  transform: { target: 'es2022' },
  plugins: [engine],
  output: { file: path('../../dist/service_worker.js'), format: 'esm', codeSplitting: false },
});
