// Entry for Node, Bun and Deno: all of index.ts, and paths, FileHandles and worker threads.

import { nodeHost } from './node_host.js';
import { EngineQuantizer } from './quantizer.js';
import type { Quantizer, QuantizerOptions } from './types.js';

export * from './exports.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last; dispose the quantizer
 * (`await using`, or `[Symbol.asyncDispose]()`) to end them at once. Idle workers do not keep the process alive.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(nodeHost, options);
}
