// A model with many tensors, as a worker has it open.
import { type HubOptions, type PlainError, QuantizationError, type Source } from 'wasmquant';
import type { LargeReply, LargeRequest, WorkKind, Works } from './messages';

const errorOf = (error: PlainError | Error): Error => (error instanceof Error ? error : new QuantizationError(error));

let requests = 0;

export class LargeModel {
  readonly #source: Source | Source[];
  readonly #hub: HubOptions;
  #worker: Promise<Worker> | null = null;
  readonly #waiting = new Map<number, (reply: LargeReply) => void>();

  constructor(source: Source | Source[], hub: HubOptions) {
    this.#source = source;
    this.#hub = hub;
  }

  /** Errors: those of the library; on abort the signal's reason, once the worker has cleaned up. */
  async ask<K extends WorkKind>(
    kind: K,
    asked: Works[K]['asked'],
    { signal, onTold }: { signal?: AbortSignal; onTold?: (told: Works[K]['told']) => void } = {},
  ): Promise<Works[K]['result']> {
    this.#worker ??= this.#start();
    const worker = await this.#worker;
    signal?.throwIfAborted();
    const id = ++requests;
    const stop = () => worker.postMessage({ type: 'stop', id } satisfies LargeRequest);
    signal?.addEventListener('abort', stop);
    try {
      return await new Promise((resolve, reject) => {
        const tensors: unknown[] = [];
        let hasRows = false;
        this.#waiting.set(id, ({ rows, told, result, error }) => {
          if (rows) {
            hasRows = true;
            tensors.push(...rows);
          } else if (told !== undefined) onTold?.(told as Works[K]['told']);
          else if (error) reject(signal?.aborted ? signal.reason : errorOf(error));
          else resolve((hasRows ? { ...(result as object), tensors } : result) as Works[K]['result']);
        });
        worker.postMessage({ type: 'work', id, kind, asked } as LargeRequest);
      });
    } finally {
      this.#waiting.delete(id);
      signal?.removeEventListener('abort', stop);
    }
  }

  /** When the model is closed. */
  end(): void {
    void this.#worker?.then((worker) => worker.terminate());
    this.#failAll('The model was closed.');
  }

  #failAll(message: string): void {
    for (const [id, reply] of this.#waiting) reply({ id, error: new Error(message) });
  }

  async #start(): Promise<Worker> {
    const { scriptUrl } = await import('./worker');
    const worker = new Worker(scriptUrl, { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<LargeReply>) => this.#waiting.get(data.id)?.(data);
    worker.onerror = (event) => {
      this.#worker = null;
      this.#failAll(event.message || 'The worker for models with many tensors could not be loaded.');
    };
    worker.postMessage({ type: 'open', source: this.#source, hub: this.#hub } satisfies LargeRequest);
    return worker;
  }
}
