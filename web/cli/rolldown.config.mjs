// Bundles the command line with the library and others' work: dist/cli.js, and in dist/cli what it loads once it is needed.
// Names are kept, so that stacks can be read; spaces and comments are not, because each start reads them.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'rolldown';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** The module's own JavaScript, which the C++ build makes. */
const engine = {
  name: 'engine',
  resolveId: (source) => (source.endsWith('/engine.js') ? path('../../dist/engine.js') : null),
};

/** Commander can start programs, which this one does not; Node's module for it takes a tenth of the start. */
const noPrograms = {
  name: 'no-programs',
  resolveId: (source) => (source === 'node:child_process' ? '\0no-programs' : null),
  load: (id) => (id === '\0no-programs' ? 'export {}' : null),
};

/** One file for what is loaded together: many small ones take longer. What none names is loaded on its own, when it is needed. */
const groups = Object.entries({
  base: [
    /rolldown\/runtime|usingCtx|web\/cli\/(streams|terminal|colors|signals|failure|early_module|diagnostics|tables|onnx_runtime\/name)\.ts/,
    /web\/lib\/(generated|api)\/|web\/present\/(generated\/runtimes|runtimes\/table|printable|sentence|units|collapse)\.ts/,
  ],
  engine: [/dist\/engine\.js|web\/lib\/(engine\/|io\/(?!foreign_file|hub|url_)|worker\/(?!worker_node))/],
  library: [
    /web\/lib\/((node|quantizer|text_files)\.ts|(host|model\/(?!gguf_tokenizer|inflate|text_file)|plan|pool)\/|language_model\/language_model)/,
    /web\/lib\/run\/(prepare_run|sidecar_files|run_identity|onnx_folder|whole_report)\.ts/,
  ],
  models: [
    /web\/cli\/(?!main|thread|execute|interrupt)[a-z_]+\.ts|web\/cli\/(onnx_runtime\/runtime|commands\/(plan|compare|quantize\/))|web\/present\/(?!generated)/,
  ],
}).map(([name, patterns]) => ({ name, test: (id) => patterns.some((pattern) => pattern.test(id)) }));

const start = {
  input: path('cli.ts'),
  platform: 'node',
  output: { file: path('../../dist/cli.js'), format: 'esm', banner: '#!/usr/bin/env node' },
};

const loaded = {
  input: { main: path('main.ts'), thread: path('thread.ts'), worker_node: path('../lib/worker/worker_node.ts') },
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  transform: { target: 'node20' },
  plugins: [engine, noPrograms],
  output: {
    dir: path('../../dist/cli'),
    cleanDir: true,
    format: 'cjs',
    minify: { mangle: false, compress: false, codegen: { removeWhitespace: true } },
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: { groups, includeDependenciesRecursively: false },
  },
};

export default defineConfig([start, loaded]);
