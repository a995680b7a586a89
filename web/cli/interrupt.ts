/**
 * Signals that end a process and can be answered, in the thread of the command. The first aborts the work, so that the library can remove its
 * temporary files. Exit codes are those of a shell: 128 + signal number.
 */
import { isMainThread, parentPort } from 'node:worker_threads';
import { CommandError } from './failure.js';
import { codeOf, exitCodes, type Signal } from './signals.js';

export class Interruption {
  readonly #controller = new AbortController();
  #exitCode: number | null = null;

  constructor() {
    if (isMainThread) for (const name of Object.keys(exitCodes) as Signal[]) process.on(name, () => this.#arrive(name));
    parentPort?.on('message', (name: Signal) => {
      parentPort?.postMessage('heard');
      this.#arrive(name);
    });
    parentPort?.unref();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** 128 and the number of the signal that arrived, else null. */
  get exitCode(): number | null {
    return this.#exitCode;
  }

  #arrive(name: Signal): void {
    if (this.#exitCode !== null) process.exit(exitCodes[name]);
    this.#exitCode = exitCodes[name];
    const { code, message } = codeOf(name);
    this.#controller.abort(new CommandError(code, message, { exitCode: this.#exitCode }));
  }
}

/** `work`, or a rejection as soon as `signal` fires: for work that needs no cleanup and takes no signal. */
export async function abortable<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  signal.throwIfAborted();
  return await new Promise<Value>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
