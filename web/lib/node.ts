/**
 * Everything that `import { ... } from 'wasmquant'` gives. In Node, Bun and Deno (this entry: index.ts plus paths, FileHandles
 * and worker threads) sources and targets may also be paths.
 * @module wasmquant
 * @group API
 */

import type { Quantizer, QuantizerOptions } from './api/types.js';
import { nodeHost } from './host/node_host.js';
import { EngineQuantizer } from './quantizer.js';

export * from './api/exports.js';
export { readTextFile } from './text_files.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last, or when the quantizer is
 * disposed (`await using`, or `close()`). Idle workers do not keep the process alive.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(nodeHost, options);
}
