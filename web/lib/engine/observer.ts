// An observer for tensors in memory.

import { defineDisposeSymbols } from '../api/disposable.js';
import { failure } from '../api/errors.js';
import type { Observer, ObserverResult, QuantizationSpec, TensorInput } from '../api/types.js';
import type { Instance } from './instance.js';
import type { WasmquantModule } from './module.js';
import { checkTensor, specText, zeroPoints } from './tensor.js';

interface FinishedJson {
  scale: number;
  zeroPoint: number | null;
  min: number;
  max: number;
  count: number;
  zeroPointType: 'int32' | 'float32';
}

defineDisposeSymbols();

export class EngineObserver implements Observer {
  readonly #instance: Instance;
  #bound: InstanceType<WasmquantModule['Observer']> | null;

  constructor(instance: Instance, spec: QuantizationSpec) {
    const text = specText(spec);
    this.#instance = instance;
    this.#bound = instance.run((module) => new module.Observer(text));
  }

  update(tensor: TensorInput): void {
    const dtype = checkTensor(tensor);
    const bound = this.#alive();
    const shape = JSON.stringify(tensor.shape);
    this.#instance.withBytes(tensor.data, (pointer) =>
      this.#instance.call<null>(() => bound.update(pointer, dtype, shape)),
    );
  }

  get passes(): 1 | 2 {
    const bound = this.#alive();
    return this.#instance.run(() => bound.passes());
  }

  nextPass(): void {
    const bound = this.#alive();
    this.#instance.call<null>(() => bound.nextPass());
  }

  finish(): ObserverResult {
    const bound = this.#alive();
    const result = this.#instance.call<FinishedJson>(() => bound.finish());
    const floats = (pointer: number) => this.#instance.float32(pointer, result.count);
    return {
      scale: floats(result.scale),
      zeroPoint: zeroPoints(this.#instance, result.zeroPoint, result.count, result.zeroPointType),
      min: floats(result.min),
      max: floats(result.max),
    };
  }

  merge(other: Observer): void {
    if (!(other instanceof EngineObserver) || other.#instance !== this.#instance) {
      throw failure('argument-invalid', 'other', 'is not an observer of the same quantizer');
    }
    const [bound, merged] = [this.#alive(), other.#alive()];
    this.#instance.call<null>(() => bound.merge(merged));
  }

  reset(): void {
    const bound = this.#alive();
    this.#instance.run(() => bound.reset());
  }

  [Symbol.dispose](): void {
    if (this.#bound) this.#instance.free(this.#bound);
    this.#bound = null;
  }

  #alive(): InstanceType<WasmquantModule['Observer']> {
    if (!this.#bound) throw failure('state-invalid', 'observer', 'is disposed');
    return this.#bound;
  }
}
