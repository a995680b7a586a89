// The loop that keeps workers busy: hands out jobs while output has room, takes results, stops at the first failure.

import { QuantizationError } from '../api/errors.js';
import { linkedController } from '../io/abort.js';
import type { WrittenBytes } from '../worker/jobs.js';
import type { Schedule, TileJob } from './job_queue.js';
import type { Pool, RunContext } from './pool.js';
import type { Advance } from './progress.js';

/** Where output goes, and whether more may come. */
export interface ResultSink {
  accept(written: WrittenBytes): void;
  /** Whether another job may be started; `running` are under way. */
  hasRoom(running: number): boolean;
  /** Resolves when `hasRoom` may have changed; rejects when writing failed. */
  changed(): Promise<void>;
}

/** A job under way. `work` rejects only where the whole run has to stop. */
interface Running {
  job: TileJob;
  controller: AbortController;
  work: Promise<void>;
}

/** Whether the values of a weight are at fault: of several such failures the first in the model is reported. */
const isOfValues = (error: unknown) =>
  error instanceof QuantizationError && (error.code === 'value-not-finite' || error.code === 'value-overflow');

/** Whether a job's tiles come before those of another. */
function isBefore({ parts: [a] }: TileJob, { parts: [b] }: TileJob): boolean {
  if (!a || !b) return false;
  return a.item < b.item || (a.item === b.item && a.first < b.first);
}

/**
 * Runs a whole schedule. Rejects with the first failure, or `signal.reason`, when no worker is at it any more. After a failure
 * of values the jobs before it are still done, so that the error does not depend on the number of workers.
 */
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
  const running = new Set<Running>();
  const first: { failure: { job: TileJob; error: unknown } | null } = { failure: null };
  const fail = (job: TileJob, error: unknown) => {
    if (first.failure && !isBefore(job, first.failure.job)) return;
    first.failure = { job, error };
    for (const other of running) if (isBefore(job, other.job)) other.controller.abort(error);
  };
  const start = (job: TileJob) => {
    const { controller, unlink: forget } = linkedController(stop.signal);
    const finish = async () => {
      try {
        const result = await pool.run(context, job, controller.signal);
        running.delete(entry);
        sink.accept(result);
        onAdvance(schedule.complete(job, result));
      } catch (error) {
        running.delete(entry);
        if (isOfValues(error))
          fail(job, error); // of a job that was aborted for it, too
        else throw error;
      } finally {
        forget();
      }
    };
    const entry: Running = { job, controller, work: Promise.resolve() };
    running.add(entry);
    entry.work = finish();
    // A failure is seen by the race below; this keeps later ones from being reported as unhandled.
    entry.work.catch(() => {});
  };
  try {
    while (!schedule.done) {
      let isOut = false; // of jobs that may be started now
      while (!isOut && running.size < workers && sink.hasRoom(running.size)) {
        const job = schedule.next();
        isOut = !job || (first.failure !== null && !isBefore(job, first.failure.job));
        if (job && !isOut) start(job);
      }
      if (schedule.done || (first.failure && isOut && running.size === 0)) break;
      await Promise.race([...[...running].map(({ work }) => work), sink.changed(), aborted]);
    }
    if (first.failure) throw first.failure.error;
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled([...running].map(({ work }) => work));
    throw error;
  } finally {
    unlink();
  }
}
