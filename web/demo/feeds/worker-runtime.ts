// ONNX Runtime in a worker, in the form that `captureActivations` expects. Loaded with the first session.
import type { Feed, Runtime, RuntimeSession, RuntimeTensor, TensorClass } from 'wasmquant/onnxruntime';
import type { PlainTensor, RuntimeReply, RuntimeWork } from './ort-worker';

class WorkerTensor implements RuntimeTensor {
  constructor(
    readonly type: string,
    readonly data: unknown,
    readonly dims: readonly number[],
  ) {}
}

export interface WorkerRuntime extends Runtime {
  Tensor: TensorClass;
}

/** `signal` terminates the worker at any time. */
class WorkerSession implements RuntimeSession {
  readonly #worker = new Worker(new URL('./ort-worker.ts', import.meta.url), { type: 'module', name: 'ort' });
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#worker.terminate(), { once: true });
  }

  async #ask(work: RuntimeWork, transfer: Transferable[] = []): Promise<Exclude<RuntimeReply, { problem: string }>> {
    this.#signal.throwIfAborted();
    const worker = this.#worker;
    const reply = await new Promise<RuntimeReply>((resolve, reject) => {
      const listening = new AbortController();
      const { signal } = listening;
      const end = (then: () => void) => {
        listening.abort();
        then();
      };
      this.#signal.addEventListener('abort', () => end(() => reject(this.#signal.reason)), { signal });
      worker.addEventListener('message', ({ data }) => end(() => resolve(data as RuntimeReply)), { signal });
      const failed = (event: Event) => {
        const detail = event instanceof ErrorEvent && event.message ? `: ${event.message}` : '';
        end(() => reject(new Error(`The runtime could not be loaded or crashed${detail}.`)));
      };
      worker.addEventListener('error', failed, { signal });
      worker.addEventListener('messageerror', failed, { signal });
      worker.postMessage(work, transfer);
    });
    if ('problem' in reply) throw new Error(reply.problem);
    return reply;
  }

  async create(model: Uint8Array, options: object): Promise<void> {
    await this.#ask({ create: model, options }, [model.buffer as ArrayBuffer]);
  }

  async run(feed: Feed, fetches: readonly string[]): Promise<Record<string, RuntimeTensor>> {
    const reply = await this.#ask({ feed: { ...feed } as Record<string, PlainTensor>, fetches });
    if (!('outputs' in reply)) throw new TypeError('a run has outputs');
    return reply.outputs;
  }

  async timed(feed: Feed, fetches: readonly string[], runs: number): Promise<number> {
    const reply = await this.#ask({ feed: { ...feed } as Record<string, PlainTensor>, fetches, runs });
    if (!('milliseconds' in reply)) throw new TypeError('timed runs have a time');
    return reply.milliseconds;
  }

  async release(): Promise<void> {
    this.#worker.terminate();
  }
}

export function workerRuntime(signal: AbortSignal): WorkerRuntime {
  const create = async (model: Uint8Array, options: object) => {
    const session = new WorkerSession(signal);
    try {
      await session.create(model, options);
      return session;
    } catch (error) {
      await session.release();
      throw error;
    }
  };
  return { InferenceSession: { create }, Tensor: WorkerTensor };
}
