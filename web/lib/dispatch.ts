// The loop that keeps workers busy: hands out jobs while output has room, takes results, stops at the first failure.

import { linkedController } from './abort.js';
import type { Pool, RunContext } from './pool.js';
import type { Job, JobResult } from './protocol.js';
import type { Advance, Schedule } from './schedule.js';

/** Where results go, and whether more may come. */
export interface ResultSink {
  accept(result: JobResult): void;
  /** Whether another job may be started; `running` are under way. */
  hasRoom(running: number): boolean;
  /** Resolves when `hasRoom` may have changed; rejects when writing failed. */
  changed(): Promise<void>;
}

/** Runs a whole schedule. Rejects with the first failure, or `signal.reason`, when no worker is at it any more. */
export async function dispatch(
  pool: Pool,
  context: RunContext,
  schedule: Schedule,
  workers: number,
  sink: ResultSink,
  onAdvance: (advance: Advance) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  const { controller: stop, unlink } = linkedController(signal);
  const aborted = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true });
  });
  aborted.catch(() => {});
  const running = new Set<Promise<void>>();
  const start = (job: Job) => {
    const work: Promise<void> = pool.run(context, job, stop.signal).then((result) => {
      running.delete(work);
      sink.accept(result);
      onAdvance(schedule.complete(job, result));
    });
    // A failure is seen by the race below; this keeps later ones from being reported as unhandled.
    work.catch(() => {});
    running.add(work);
  };
  try {
    while (!schedule.done) {
      while (running.size < workers && sink.hasRoom(running.size)) {
        const job = schedule.next();
        if (!job) break;
        start(job);
      }
      if (schedule.done) break;
      await Promise.race([...running, sink.changed(), aborted]);
    }
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(running);
    throw error;
  } finally {
    unlink();
  }
}
