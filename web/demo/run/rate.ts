// Bytes per second over the last seconds of a run, so that the remaining time follows the current speed.

const windowMs = 4000;
/** Shorter spans are unreliable. */
const leastMs = 400;

export class Rate {
  #samples: { at: number; bytes: number }[] = [];

  /** Adds a sample and returns bytes per second, or null if it is too early. */
  add(bytes: number, at = performance.now()): number | null {
    this.#samples.push({ at, bytes });
    while (this.#samples.length > 2 && at - (this.#samples[1]?.at ?? at) > windowMs) this.#samples.shift();
    const first = this.#samples[0];
    if (!first || at - first.at < leastMs || bytes === first.bytes) return null;
    return (1000 * (bytes - first.bytes)) / (at - first.at);
  }
}
