// Keeps workers busy: starts jobs while output has room, takes results, stops at the first failure.

import { QuantizationError } from '../api/errors.js';
import { linkedController } from '../io/abort.js';
import type { WrittenBytes } from '../worker/jobs.js';
import type { Schedule, TileJob } from './job_queue.js';
import type { Pool, RunContext } from './pool.js';
import type { Advance } from './progress.js';

/** Receives output and limits how much may be pending. */
export interface ResultSink {
  accept(written: WrittenBytes): void;
  /** Whether another job may start while `running` are running. */
  hasRoom(running: number): boolean;
  /** Resolves when `hasRoom` may have changed; rejects if writing failed. */
  changed(): Promise<void>;
}

/** A running job. `work` rejects only if the whole run must stop. */
interface Running {
  job: TileJob;
  controller: AbortController;
  work: Promise<void>;
}

/** Whether a weight's values are at fault; of several such failures the first in model order is reported. */
const isOfValues = (error: unknown) =>
  error instanceof QuantizationError && (error.code === 'value-not-finite' || error.code === 'value-overflow');

function isBefore({ parts: [a] }: TileJob, { parts: [b] }: TileJob): boolean {
  if (!a || !b) return false;
  return a.item < b.item || (a.item === b.item && a.first < b.first);
}

/** Runs a whole schedule. Rejects with the first failure, or `signal.reason`, once no worker is busy. After a value
 * error, earlier jobs still run, so that the error does not depend on the number of workers. */
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
          fail(job, error); // also for a job aborted because of it
        else throw error;
      } finally {
        forget();
      }
    };
    const entry: Running = { job, controller, work: Promise.resolve() };
    running.add(entry);
    entry.work = finish();
    // The race below sees a failure; this keeps later ones from being reported as unhandled.
    entry.work.catch(() => {});
  };
  try {
    while (!schedule.done) {
      let isOut = false; // no more jobs can start now
      while (!isOut && running.size < workers && sink.hasRoom(running.size)) {
        const job = schedule.next();
        isOut = !job || (first.failure !== null && !isBefore(job, first.failure.job));
        if (job && !isOut) start(job);
      }
      const isStuck = isOut && running.size === 0;
      if (schedule.done || (first.failure && isStuck)) break;
      if (isStuck) throw new RangeError('tensors are left, and no job has them');
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
