// Random numbers that a seed repeats.

/** Marsaglia-style mixing of a counter (mulberry32): numbers in [0, 1). */
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number below `limit`. */
  below(limit) {
    return Math.floor(this.next() * limit);
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** True with this probability. */
  chance(probability) {
    return this.next() < probability;
  }

  normal() {
    return Math.sqrt(-2 * Math.log(this.next() || 1e-9)) * Math.cos(2 * Math.PI * this.next());
  }
}
