// The runs of a quantizer, so that disposing it ends them and waits until they have cleaned up.

import { check } from '../api/arguments.js';
import { linkedController } from '../io/abort.js';

export class Runs {
  readonly #running = new Map<AbortController, Promise<unknown>>();

  /** Calls `use` with a signal that fires with `signal`, and when all runs end. */
  async during<T>(signal: AbortSignal | undefined, use: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal !== undefined) check(signal, 'signal', 'signal');
    if (signal?.aborted) throw signal.reason;
    const { controller, unlink } = linkedController(signal);
    const run = use(controller.signal);
    this.#running.set(controller, run);
    try {
      return await run;
    } finally {
      this.#running.delete(controller);
      unlink();
    }
  }

  /** Fires every signal with `reason`; resolves when no run is left. */
  async end(reason: unknown): Promise<void> {
    const runs = [...this.#running.values()];
    for (const controller of this.#running.keys()) controller.abort(reason);
    await Promise.allSettled(runs);
  }
}
