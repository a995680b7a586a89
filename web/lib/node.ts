// Entry for Node, Bun and Deno: index.ts plus paths, FileHandles and worker threads.

import type { Quantizer, QuantizerOptions } from './api/types.js';
import { nodeHost } from './host/node_host.js';
import { EngineQuantizer } from './quantizer.js';

export * from './api/exports.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last, or when the quantizer is
 * disposed (`await using`, or `[Symbol.asyncDispose]()`). Idle workers do not keep the process alive.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(nodeHost, options);
}
