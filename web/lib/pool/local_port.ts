// A "worker" in the caller's thread, for 0 threads. Yields between tiles, so that pages stay responsive.

import type { FromWorker, Port, ToWorker } from '../worker/protocol.js';
import type { WorkerHost } from '../worker/tile_input.js';
import { JobServer } from '../worker/worker_server.js';

/** Milliseconds of work between yields: shorter than a frame. */
const turnMs = 12;

export class LocalPort implements Port {
  readonly server: JobServer;
  #message: (message: FromWorker) => void = () => {};
  #terminated = false;
  #idle: Promise<void> = Promise.resolve();

  constructor(host: WorkerHost) {
    let lastTurn = performance.now();
    const pause = async () => {
      if (performance.now() - lastTurn >= turnMs) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        lastTurn = performance.now();
      }
      if (this.#terminated) throw new Error('terminated');
    };
    const send = (message: FromWorker) => {
      if (!this.#terminated) queueMicrotask(() => this.#message(message));
    };
    this.server = new JobServer(host, send, pause);
  }

  listen(message: (message: FromWorker) => void): void {
    this.#message = message;
  }

  post(message: ToWorker): void {
    if (this.#terminated) return;
    const done = this.server.receive(message);
    if (message.type === 'job' || message.type === 'start') this.#idle = done;
  }

  async terminate(): Promise<void> {
    if (this.#terminated) return;
    this.#terminated = true;
    this.server.abandon();
    await this.#idle;
    this.server.close();
  }

  hold(): void {}
}
