// Entry for browsers and web workers. Node, Bun and Deno get node.ts through the `node` condition.

import type { Quantizer, QuantizerOptions } from './api/types.js';
import { browserHost } from './host/host.js';
import { EngineQuantizer } from './quantizer.js';

export * from './api/exports.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last; dispose the quantizer
 * (`await using`, or `[Symbol.asyncDispose]()`) to end them at once.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(browserHost, options);
}
