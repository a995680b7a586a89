// A browser worker at its work.

import type { ToWorker } from './protocol.js';
import { noOutput, openPortableInput } from './tile_input.js';
import { JobServer } from './worker_server.js';

/** The subset of DedicatedWorkerGlobalScope used here; the DOM types describe pages. */
interface WorkerScope {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  onmessage: ((event: { data: ToWorker }) => void) | null;
}

/** Answers the messages of the thread that started this one. */
export function serveWorker(): void {
  const scope = globalThis as unknown as WorkerScope;
  const server = new JobServer({ openInput: openPortableInput, openOutput: noOutput }, (message, transfer) =>
    scope.postMessage(message, transfer),
  );
  scope.onmessage = ({ data }) => void server.receive(data);
}
