// An observer for tensors in memory.

import { check } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { ObservedPart, Observer, ObserverResult, QuantizationSpec, TensorInput } from '../api/types.js';
import { defineDisposeSymbols } from './disposable.js';
import type { Instance } from './instance.js';
import type { BoundObserver, HeapBytes } from './module.js';
import { elementsOf, readTensor, sizesOf, specText, zeroPoints } from './tensor.js';

const wholeBatch: ObservedPart = { batch: -1 };

/** Errors: argument-invalid, shape-mismatch. */
function checkPart(part: ObservedPart, elements: number): ObservedPart {
  const { batch, offset = 0, ...given } = check(part, { batch: 'number', shape: 'any', offset: 'number' }, 'part');
  for (const [name, number] of Object.entries({ batch, offset }))
    if (!Number.isSafeInteger(number) || number < 0)
      throw failure('argument-invalid', `part.${name}`, `is ${number}; it must be a whole number, 0 or more`);
  const shape = given.shape === undefined ? undefined : sizesOf(given.shape);
  const whole = shape ? elementsOf(shape) : elements;
  if (offset + elements > whole)
    throw failure('shape-mismatch', 'part', `ends at element ${offset + elements} of a batch of ${whole}`);
  return { batch, offset, ...(shape && { shape }) };
}

defineDisposeSymbols();

export class EngineObserver implements Observer {
  readonly #instance: Instance;
  #bound: BoundObserver | null;

  constructor(instance: Instance, spec: QuantizationSpec) {
    const text = specText(spec);
    this.#instance = instance;
    this.#bound = instance.make((module) => module.Observer.make(text));
  }

  update(tensor: TensorInput, part?: ObservedPart): void {
    const { dtype, bytes, elements, shape: own } = readTensor(tensor);
    const bound = this.#alive();
    const { batch, shape = own, offset = 0 } = part === undefined ? wholeBatch : checkPart(part, elements);
    this.#instance.withBytes(bytes, (pointer) =>
      this.#instance.done(() => bound.update(pointer, dtype, elements, offset, JSON.stringify(shape), batch)),
    );
  }

  get passes(): 1 | 2 {
    const bound = this.#alive();
    return this.#instance.run(() => bound.passes());
  }

  nextPass(): void {
    const bound = this.#alive();
    this.#instance.done(() => bound.nextPass());
  }

  finish(): ObserverResult {
    const bound = this.#alive();
    const { facts, regions } = this.#instance.parts<{ zeroPointType: 'int32' | 'float32' }>(() => bound.finish());
    const floats = (name: string) => this.#instance.float32(regions[name] as HeapBytes);
    return {
      scale: floats('scale'),
      zeroPoint: zeroPoints(this.#instance, regions.zeroPoint, facts.zeroPointType),
      min: floats('min'),
      max: floats('max'),
    };
  }

  merge(other: Observer): void {
    if (!(other instanceof EngineObserver) || other.#instance !== this.#instance) {
      throw failure('argument-invalid', 'other', 'is not an observer of the same quantizer');
    }
    const [bound, merged] = [this.#alive(), other.#alive()];
    this.#instance.done(() => bound.merge(merged));
  }

  reset(): void {
    const bound = this.#alive();
    this.#instance.run(() => bound.reset());
  }

  [Symbol.dispose](): void {
    if (this.#bound) this.#instance.free(this.#bound);
    this.#bound = null;
  }

  #alive(): BoundObserver {
    if (!this.#bound) throw failure('state-invalid', 'observer', 'is disposed');
    return this.#bound;
  }
}
