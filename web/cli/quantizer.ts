/** The library, with the module that may have been compiled already. */
import { createQuantizer, type Quantizer, type QuantizerOptions } from '../lib/node.js';
import { earlyModule } from './early_module.js';

export async function startQuantizer(options: QuantizerOptions): Promise<Quantizer> {
  const wasmModule = await earlyModule();
  return await createQuantizer({ ...options, ...(wasmModule && { wasmModule }) });
}
