/** dist/engine.js, written by Emscripten (cmake/module.cmake). */
import type { WasmquantModule } from './module.js';

export interface EngineOptions {
  /** Instantiates wasmquant.wasm with `imports` and hands the instance to `receive`. */
  instantiateWasm(
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module?: WebAssembly.Module) => void,
  ): object;
}

export default function createWasmquantModule(options: EngineOptions): Promise<WasmquantModule>;
