// Promises with an AbortSignal or a timeout, and of later tasks.

/** Like `promise`, but rejects with `signal.reason` as soon as the signal fires. */
export async function abortable<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (!signal) return promise;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** A controller that also follows `signal` until `unlink`. */
export function linkedController(signal: AbortSignal | undefined): { controller: AbortController; unlink(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort, { once: true });
  return { controller, unlink: () => signal?.removeEventListener('abort', abort) };
}

/** Results of what `start` begins with a signal of its own, which fires with `signal` and with the first failure; that is thrown once all have ended. */
export async function together<T>(
  signal: AbortSignal | undefined,
  start: (signal: AbortSignal) => readonly Promise<T>[],
): Promise<T[]> {
  const { controller, unlink } = linkedController(signal);
  const running = start(controller.signal);
  try {
    return await Promise.all(running);
  } catch (error) {
    controller.abort(error);
    await Promise.allSettled(running);
    throw error;
  } finally {
    unlink();
  }
}

/** The rest is a task of its own: a page can draw, and events are handled, before it. */
export const nextTask = () => new Promise<void>((resolve) => setTimeout(resolve));

/** Resolves when `promise` settles or the time is over. Never rejects. */
export async function settledWithin(milliseconds: number, promise: Promise<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise.catch(() => {}), late]);
  clearTimeout(timer);
}
