/**
 * Signals that end a process and can be answered. The first aborts the work, so that the library can remove its temporary files; the second ends the
 * process immediately. Exit codes are those of a shell: 128 + signal number.
 */
import { CommandError } from './failure.js';

const kExitCodes = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGALRM: 142, SIGTERM: 143, SIGXCPU: 152 } as const;
type Signal = keyof typeof kExitCodes;

export class Interruption {
  readonly #controller = new AbortController();
  #exitCode: number | null = null;

  constructor() {
    for (const name of Object.keys(kExitCodes) as Signal[]) process.on(name, () => this.#arrive(name));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** 128 and the number of the signal that arrived, else null. */
  get exitCode(): number | null {
    return this.#exitCode;
  }

  #arrive(name: Signal): void {
    if (this.#exitCode !== null) process.exit(kExitCodes[name]);
    this.#exitCode = kExitCodes[name];
    const code = name === 'SIGINT' ? 'interrupted' : 'terminated';
    this.#controller.abort(new CommandError(code, `${code}; nothing was written`, { exitCode: this.#exitCode }));
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
