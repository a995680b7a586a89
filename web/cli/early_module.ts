/** The library's module, compiled by other threads of the process while this one loads the code that uses it. */
import { readFileSync } from 'node:fs';

let compiling: Promise<WebAssembly.Module | null> | null = null;

async function compile(): Promise<WebAssembly.Module | null> {
  try {
    return await WebAssembly.compile(readFileSync(new URL('../wasmquant.wasm', import.meta.url)));
  } catch {
    return null; // the library tries again, and says what is wrong
  }
}

export function compileEarly(): void {
  compiling ??= compile();
}

/** Null if it was not begun or failed. */
export const earlyModule = async (): Promise<WebAssembly.Module | null> => await compiling;
