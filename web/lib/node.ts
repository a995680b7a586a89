// Entry for Node, Bun and Deno: all of index.ts, and paths, FileHandles and worker threads.

import { nodeHost } from './node_host.js';
import { EngineQuantizer } from './quantizer.js';
import type { Quantizer, QuantizerOptions } from './types.js';

export type { AutoConfig, AutoConfigOptions, AutoLayer } from './auto_config.js';
export * from './config_builders.js';
export type * from './config_types.js';
export type { CoreErrorCode, LibraryErrorCode, PlainError } from './errors.js';
export { coreErrorCodes, libraryErrorCodes, QuantizationError } from './errors.js';
export type * from './types.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last; dispose the quantizer
 * (`await using`, or `[Symbol.asyncDispose]()`) to end them at once. Idle workers do not keep the process alive.
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(nodeHost, options);
}
