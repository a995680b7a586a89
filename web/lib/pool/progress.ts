// Progress reports: monotonic and throttled; the first of a phase is never dropped.

import type { Progress } from '../api/types.js';
import { isObject } from '../api/values.js';

/** Time between two reports, in milliseconds. */
const intervalMs = 50;

/** Progress since the last report: finished input bytes and tensors. */
export interface Advance {
  phase: Progress['phase'];
  bytes: number;
  tensors: number;
  name?: string;
}

export class ProgressMeter {
  readonly #report: ((progress: Progress) => void) | undefined;
  readonly #count: number;
  readonly #bytesTotal: number;
  #bytesDone = 0;
  #index = 0;
  #tensor: string | undefined;
  readonly #phases = new Set<Progress['phase']>();
  #last = Number.NEGATIVE_INFINITY;
  #rejected: { error: unknown } | null = null;

  constructor(report: ((progress: Progress) => void) | undefined, count: number, bytesTotal: number) {
    this.#report = report;
    this.#count = count;
    this.#bytesTotal = bytesTotal;
  }

  /** Errors: those of the caller's function, also where it is async. */
  advance({ phase, bytes, tensors, name }: Advance, always = false): void {
    if (this.#rejected) throw this.#rejected.error;
    this.#bytesDone = Math.min(this.#bytesTotal, this.#bytesDone + bytes);
    this.#index += tensors;
    this.#tensor = name ?? this.#tensor;
    const now = performance.now();
    const isNew = !this.#phases.has(phase);
    if (!this.#report || (!always && !isNew && now - this.#last < intervalMs)) return;
    this.#phases.add(phase);
    this.#last = now;
    const told: unknown = this.#report({
      phase,
      ...(this.#tensor === undefined ? {} : { tensor: this.#tensor }),
      index: this.#index,
      count: this.#count,
      bytesDone: Math.floor(this.#bytesDone),
      bytesTotal: this.#bytesTotal,
    });
    // A function that is async rejects later; the run fails as if it had thrown.
    if (isObject(told) && 'then' in told)
      Promise.resolve(told).catch((error: unknown) => (this.#rejected ??= { error }));
  }

  /** The last report: everything is done. */
  finish(phase: Progress['phase']): void {
    this.advance({ phase, bytes: this.#bytesTotal - this.#bytesDone, tensors: this.#count - this.#index }, true);
  }
}
