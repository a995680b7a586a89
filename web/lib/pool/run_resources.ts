// The resources of every run, and how it submits work to the pool.

import type { Model, Source } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { type MemoryPlan, sizesFor } from '../engine/memory.js';
import type { FileSource } from '../io/file_source.js';
import type { JobKind, JobKinds, JobPart, WorkProgress } from '../worker/jobs.js';
import type { OutputPath } from '../worker/protocol.js';
import { dispatch } from './job_loop.js';
import { Schedule, type WorkItem } from './job_queue.js';
import type { Pool, RunContext } from './pool.js';
import type { Advance } from './progress.js';

export interface RunResources {
  instance: Instance;
  pool: Pool;
  memory: MemoryPlan;
  open(source: Source | Source[]): Promise<Model>;
}

interface Weights {
  weights: readonly FileSource[];
}

/** A run's data for workers: files of models, packed tasks, and outputs by path (as in `ContextFiles`). */
export interface RunInputs {
  models: readonly Weights[];
  work: Uint8Array[];
  /** Whether workers get packed tasks with the jobs that name them, and keep no others. */
  sendsByJob?: boolean;
  outputs?: (OutputPath | null)[];
}

/** Lends them to workers until `use` is done. */
export async function withRunInputs<T>(
  pool: Pool,
  { models, work, sendsByJob = false, outputs = [] }: RunInputs,
  use: (context: RunContext) => Promise<T>,
): Promise<T> {
  const inputs = models.map(({ weights }) => weights.map(({ remote }) => remote));
  const files = { inputs, outputs, work: sendsByJob ? [] : work };
  const read: RunContext['read'] = async (input, file, offset, length) => {
    const source = models[input]?.weights[file];
    if (!source) throw new RangeError(`file ${file} of model ${input} does not exist`);
    return source.read(offset, length);
  };
  const context = pool.context(files, read, sendsByJob ? work : []);
  try {
    return await use(context);
  } finally {
    await pool.release(context);
  }
}

/** Runs tasks of which only the errors matter. `bytes`: input bytes in total and per job. */
export async function measureErrors(
  { pool, memory }: RunResources,
  runInputs: RunInputs,
  items: WorkItem[],
  bytes: { input: number; job: number },
  signal: AbortSignal | undefined,
  onAdvance: (advance: Advance) => void = () => {},
): Promise<Schedule> {
  const { workers, shareBytes } = sizesFor(memory, bytes.input);
  const schedule = new Schedule(items, Math.min(bytes.job, shareBytes), workers);
  const sink = { accept() {}, hasRoom: () => true, changed: () => new Promise<void>(() => {}) };
  await withRunInputs(pool, runInputs, (context) =>
    dispatch(pool, context, schedule, workers, sink, onAdvance, signal),
  );
  return schedule;
}

/** A job with one part. `label`: for messages; `bytes`: input bytes. */
interface SingleJob<K extends JobKind> {
  label: string;
  bytes: number;
  part: JobPart<K>;
}

/** Runs one job that writes nothing. Errors: the job's, worker-crashed. */
export function runOne<K extends JobKind>(
  { pool }: RunResources,
  runInputs: RunInputs,
  { part, ...job }: SingleJob<K>,
  signal: AbortSignal | undefined,
  onProgress?: (progress: WorkProgress) => void,
): Promise<JobKinds[K]['result']> {
  signal?.throwIfAborted();
  return withRunInputs(pool, runInputs, async (context) => {
    const { parts } = await pool.run(context, { ...job, parts: [part] }, signal, onProgress);
    return parts[0] as JobKinds[K]['result'];
  });
}
