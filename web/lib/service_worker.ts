// Entry for service workers and backgrounds of browser extensions, which forbid import() and mostly have no Worker. The
// build bundles it into one file without dynamic imports (rolldown.config.mjs).

import { failure } from './api/errors.js';
import type { Quantizer, QuantizerOptions } from './api/types.js';
import { compileUrl, type Host, portableHost, portOf } from './host/host.js';
import { EngineQuantizer } from './quantizer.js';

export * from './api/exports.js';

const host: Host = {
  ...portableHost,
  compile: (url) => compileUrl(url ?? new URL('./wasmquant.wasm', import.meta.url)),
  startWorker(url) {
    if (url === undefined)
      throw failure('argument-invalid', 'workerUrl', 'is needed for workers of this entry; or pass threads: 0');
    return portOf(new Worker(url, { type: 'module' }));
  },
};

/**
 * Loads the engine. Runs use this thread unless `threads` and `workerUrl` are given, where the host has workers.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create({ ...host, hasWorkers: false }, options);
}
