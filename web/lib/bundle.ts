// Entry in one file, for pages without a bundler: the library and the script of its workers, so that a page asks for two files. The build
// makes that file (rolldown.config.mjs).

import type { Quantizer, QuantizerOptions } from './api/types.js';
import { compileUrl, type Host, portableHost, portOf } from './host/host.js';
import { EngineQuantizer } from './quantizer.js';
import { serveWorker } from './worker/serve.js';

export * from './api/exports.js';

/** What a thread is called that this file started: it answers jobs. In any other the file is the library. */
const workerName = 'wasmquant worker';

let importingScript: string | undefined;

/** Browsers start workers from the page's own origin only: one of a script that imports this file. */
function workerScript(): string {
  const script = import.meta.url;
  if (new URL(script).origin === globalThis.location?.origin) return script;
  const source = `import ${JSON.stringify(script)};`;
  importingScript ??= URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  return importingScript;
}

const host: Host = {
  ...portableHost,
  compile: (url) => compileUrl(url ?? new URL('./wasmquant.wasm', import.meta.url)),
  startWorker: (url) => portOf(new Worker(url ?? workerScript(), { type: 'module', name: workerName })),
};

/**
 * Loads the engine. Workers start with the first run and end some time after the last, or when the quantizer is
 * disposed (`await using`, or `close()`).
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(host, options);
}

if ((globalThis as { name?: unknown }).name === workerName && typeof document === 'undefined') serveWorker();
