// A worker's life: starts the engine, then answers jobs one after another, in any kind of thread.

import { QuantizationError, textOf } from '../api/errors.js';
import { Instance } from '../engine/instance.js';
import { runJob } from './job.js';
import { JobFiles } from './job_files.js';
import { JobHost } from './job_host.js';
import type { WorkProgress } from './jobs.js';
import type { FromWorker, ToWorker } from './protocol.js';
import { TeamMail } from './team.js';
import type { WorkerHost } from './tile_input.js';

type Send = (message: FromWorker, transfer: ArrayBuffer[]) => void;
type Pending = { resolve: (bytes: Uint8Array) => void; reject: (error: unknown) => void };

export class JobServer {
  readonly #host: WorkerHost;
  readonly #send: Send;
  readonly #pause: () => Promise<void>;
  readonly #contexts = new Map<number, JobFiles>();
  readonly #asked = new Map<number, Pending>();
  #request = 0;
  #mail = new TeamMail();
  #instance: Instance | null = null;

  /** `pause` runs between tiles; it throws to cancel the job. */
  constructor(host: WorkerHost, send: Send, pause: () => Promise<void> = async () => {}) {
    this.#host = host;
    this.#send = send;
    this.#pause = pause;
  }

  /** The engine, once started; for leak tests. */
  get instance(): Instance | null {
    return this.#instance;
  }

  /** Handles one message; resolves when its work is done, never rejects. */
  async receive(message: ToWorker): Promise<void> {
    switch (message.type) {
      case 'start':
        return this.#start(message.module);
      case 'context':
        this.#contexts.set(
          message.context,
          new JobFiles(this.#host, message.files, (...range) => this.#ask(message.context, ...range)),
        );
        return;
      case 'job':
        return this.#job(message);
      case 'shared':
        this.#mail.arrive(message.member, message.bytes);
        return;
      case 'bytes':
        this.#answered(message.request)?.resolve(message.bytes);
        return;
      case 'bytes-failed':
        this.#answered(message.request)?.reject(new QuantizationError(message.error));
        return;
      case 'release':
        this.#contexts.get(message.context)?.close();
        this.#contexts.delete(message.context);
        this.#send({ type: 'released', context: message.context }, []);
        return;
    }
  }

  /** Rejects pending reads from the main thread; their job fails. */
  abandon(): void {
    for (const pending of this.#asked.values()) pending.reject(new Error('terminated'));
    this.#asked.clear();
  }

  close(): void {
    for (const context of this.#contexts.values()) context.close();
    this.#contexts.clear();
  }

  async #start(module: WebAssembly.Module): Promise<void> {
    try {
      this.#instance = await Instance.create(module);
      this.#send({ type: 'ready' }, []);
    } catch (error) {
      this.#send({ type: 'crashed', message: textOf(error) }, []);
    }
  }

  async #job({ id, context, job, work, member }: Extract<ToWorker, { type: 'job' }>): Promise<void> {
    this.#mail = new TeamMail(); // a failed team may have left some
    try {
      const files = this.#contexts.get(context);
      const instance = this.#instance;
      if (!instance || !files) throw new Error('a job came before its context');
      files.replaceWork(work);
      const report = (progress: WorkProgress) =>
        this.#send(
          { type: 'progress', id, progress, memoryBytes: instance.memoryBytes },
          progress.stored?.pieces.map((piece) => piece.bytes.buffer) ?? [],
        );
      const share = (bytes: Uint8Array<ArrayBuffer>[]) =>
        this.#send(
          { type: 'share', member, bytes },
          bytes.map(({ buffer }) => buffer),
        );
      const receive = (from: number) => this.#mail.receive(from);
      const host = new JobHost(instance, files, this.#pause, report, {
        member,
        members: job.members ?? 1,
        share,
        receive,
      });
      const result = await runJob(host, job);
      this.#send(
        { type: 'done', id, result, memoryBytes: instance.memoryBytes },
        result.pieces.map((piece) => piece.bytes.buffer),
      );
    } catch (error) {
      if (error instanceof QuantizationError && error.code !== 'engine-crashed') {
        this.#send({ type: 'failed', id, error: error.toPlain() }, []);
      } else {
        this.#send({ type: 'crashed', message: textOf(error) }, []);
      }
    }
  }

  #ask(context: number, input: number, file: number, offset: number, length: number): Promise<Uint8Array> {
    const request = this.#request++;
    return new Promise((resolve, reject) => {
      this.#asked.set(request, { resolve, reject });
      this.#send({ type: 'read', request, context, input, file, offset, length }, []);
    });
  }

  #answered(request: number): Pending | undefined {
    const pending = this.#asked.get(request);
    this.#asked.delete(request);
    return pending;
  }
}
