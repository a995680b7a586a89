// Entry for browsers and web workers. The `node` condition selects node.ts.

import type { Quantizer, QuantizerOptions } from './api/types.js';
import { browserHost } from './host/browser_host.js';
import { EngineQuantizer } from './quantizer.js';

export * from './api/exports.js';
export { readTextFile } from './text_files.js';

/**
 * Loads the engine. Workers start with the first run and end some time after the last, or when the quantizer is
 * disposed (`await using`, or `close()`).
 * @throws QuantizationError engine-unavailable, memory-budget, argument-invalid
 */
export async function createQuantizer(options: QuantizerOptions = {}): Promise<Quantizer> {
  return EngineQuantizer.create(browserHost, options);
}
