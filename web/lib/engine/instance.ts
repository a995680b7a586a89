// An instance of the WebAssembly module; unwraps its replies. The only file that touches the heap: memory may grow
// in any bound call, so views never outlive one synchronous function; callers get copies, or a view lent to a callback.

import type { CoreErrorCode } from '../api/errors.js';
import { failure, QuantizationError, textOf } from '../api/errors.js';
import type { Diagnostic } from '../api/types.js';
import { arrayOf } from '../api/values.js';
import createWasmquantModule from '../engine.js';
import type { BoundWork } from './bound_work.js';
import type { HeapBytes, StoredTile, TileRead, WasmquantModule } from './module.js';
import { readsOf, regionsOf, tileOf } from './replies.js';

interface CoreFailure {
  code: CoreErrorCode;
  where?: string;
  message: string;
  diagnostics?: Diagnostic[];
}

/** Embind refuses an argument before it calls; anything else that is thrown has left C++ in the middle of its work. */
const isRefusedArgument = (error: unknown) =>
  error instanceof TypeError || (error instanceof Error && error.name === 'BindingError');

export class Instance {
  readonly #module: WasmquantModule;
  readonly #memory: WebAssembly.Memory;
  #trap: string | null = null;

  private constructor(module: WasmquantModule) {
    this.#module = module;
    this.#memory = module.memory();
  }

  /** Starts an instance. Errors: engine-unavailable. */
  static async create(module: WebAssembly.Module): Promise<Instance> {
    try {
      const bound = await new Promise<WasmquantModule>((resolve, reject) => {
        createWasmquantModule({
          instantiateWasm(imports, receive) {
            WebAssembly.instantiate(module, imports).then((instance) => receive(instance, module), reject);
            return {};
          },
        }).then(resolve, reject);
      });
      return new Instance(bound);
    } catch (error) {
      throw failure('engine-unavailable', 'wasmquant.wasm', `cannot be started: ${textOf(error)}`, error);
    }
  }

  /** Runs a bound call that returns JSON. Errors of this and the next: the core's; after a trap engine-crashed. */
  call<T>(bound: (module: WasmquantModule) => string): T {
    return JSON.parse(this.text(bound)) as T;
  }

  /** The JSON itself. */
  text(bound: (module: WasmquantModule) => string): string {
    const text = this.run(bound);
    if (text === '') throw this.#failure();
    return text;
  }

  done(bound: (module: WasmquantModule) => boolean): void {
    if (!this.run(bound)) throw this.#failure();
  }

  number(bound: (module: WasmquantModule) => number): number {
    const found = this.run(bound);
    if (Number.isNaN(found)) throw this.#failure();
    return found;
  }

  flag(bound: (module: WasmquantModule) => number): boolean {
    return this.number(bound) !== 0;
  }

  /** Makes a bound object, which the caller frees. */
  make<B>(bound: (module: WasmquantModule) => B | null): B {
    const made = this.run(bound);
    if (made === null) throw this.#failure();
    return made;
  }

  /** Runs a bound call that returns the address of numbers. */
  #numbers(bound: (module: WasmquantModule) => number): Float64Array {
    const address = this.run(bound);
    if (address === 0) throw this.#failure();
    const [count = 0] = new Float64Array(this.#memory.buffer, address, 1);
    return new Float64Array(this.#memory.buffer, address + 8, count).slice();
  }

  reads(bound: (module: WasmquantModule) => number): TileRead[] {
    return readsOf(this.#numbers(bound));
  }
  tile(bound: (module: WasmquantModule) => number): StoredTile {
    return tileOf(this.#numbers(bound));
  }
  regions(bound: (module: WasmquantModule) => number): HeapBytes[] {
    return regionsOf(this.#numbers(bound));
  }
  region(bound: (module: WasmquantModule) => number): HeapBytes {
    return this.regions(bound)[0] as HeapBytes;
  }

  /** A document and the regions that it comes with, by name. */
  parts<T>(bound: (module: WasmquantModule) => number): { facts: T; regions: Record<string, HeapBytes> } {
    const [document, ...found] = this.regions(bound) as [HeapBytes, ...HeapBytes[]];
    const text = new TextDecoder().decode(this.copyOut(document.pointer, document.bytes));
    const { facts, names } = JSON.parse(text) as { facts: T; names: string[] };
    return { facts, regions: Object.fromEntries(found.map((region, i) => [names[i], region])) };
  }

  /** Copies of a region. */
  bytes(bound: (module: WasmquantModule) => number): Uint8Array<ArrayBuffer> {
    const { pointer, bytes } = this.region(bound);
    return this.copyOut(pointer, bytes);
  }
  floats(bound: (module: WasmquantModule) => number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.bytes(bound).buffer);
  }
  doubles(bound: (module: WasmquantModule) => number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.bytes(bound).buffer);
  }

  #failure(): QuantizationError {
    const { code, where, message, diagnostics } = JSON.parse(this.run((module) => module.takeError())) as CoreFailure;
    return new QuantizationError({ code, where, detail: message, diagnostics });
  }

  /** Runs a bound call with a plain result (a number, string or object). */
  run<T>(bound: (module: WasmquantModule) => T): T {
    if (this.#trap !== null) throw this.#crashed();
    try {
      return bound(this.#module);
    } catch (error) {
      if (error instanceof QuantizationError) throw error;
      if (isRefusedArgument(error)) throw failure('argument-invalid', '', textOf(error), error);
      this.#trap = textOf(error);
      throw this.#crashed(error);
    }
  }

  #crashed(cause?: unknown): QuantizationError {
    const detail = `stopped with "${this.#trap}", usually for lack of memory; create a new quantizer, with a smaller memoryBudgetBytes`;
    return failure('engine-crashed', 'wasmquant.wasm', detail, cause);
  }

  /** Deletes a bound object; after a trap does nothing. A trap here has nothing to undo: the next call reports it. */
  free(object: { delete(): void }): void {
    if (this.#trap !== null) return;
    try {
      this.run(() => object.delete());
    } catch (error) {
      if (this.#trap === null) throw error;
    }
  }

  /** Makes a bound object, lends it to `use` and deletes it. */
  async withObject<B extends { delete(): void }, T>(
    make: (module: WasmquantModule) => B | null,
    use: (object: B) => Promise<T>,
  ): Promise<T> {
    const object = this.make(make);
    try {
      return await use(object);
    } finally {
      this.free(object);
    }
  }

  /** Unpacks tasks; the caller frees them. Errors: argument-invalid. */
  unpack(packed: Uint8Array): BoundWork {
    return this.withBytes(packed, (pointer) => this.make((module) => module.Work.make(pointer, packed.byteLength)));
  }

  /** Number of live bound objects. */
  get liveObjects(): number {
    return this.run((module) => module.liveObjects());
  }

  get memoryBytes(): number {
    return this.#memory.buffer.byteLength;
  }

  /** Lends a view of the heap to `use`, which must be synchronous and must not call the module. */
  lend<T>(pointer: number, bytes: number, use: (view: Uint8Array) => T): T {
    return use(new Uint8Array(this.#memory.buffer, pointer, bytes));
  }

  copyIn(pointer: number, bytes: Uint8Array): void {
    this.lend(pointer, bytes.byteLength, (view) => view.set(bytes));
  }

  copyOut(pointer: number, bytes: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer, pointer, bytes).slice();
  }

  /** Copies a region at any address, aligned or not. */
  float32({ pointer, bytes }: HeapBytes): Float32Array<ArrayBuffer> {
    return new Float32Array(this.copyOut(pointer, bytes).buffer);
  }

  /** Puts `data` into the heap while `use` runs, and passes its address. */
  withBytes<T>(data: ArrayBufferView, use: (pointer: number) => T): T {
    const { bytes } = arrayOf(data, '');
    const pointer = this.run((module) => module.allocate(bytes.byteLength));
    if (pointer === 0 && bytes.byteLength > 0) {
      throw failure('memory-budget', '', `no room for ${bytes.byteLength} bytes in WebAssembly memory`);
    }
    try {
      this.copyIn(pointer, bytes);
      return use(pointer);
    } finally {
      if (this.#trap === null) this.run((module) => module.release(pointer));
    }
  }
}
