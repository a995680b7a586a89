// What every run works with, and how it gives work to the pool.

import type { Model, Source } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { type MemoryPlan, sizesFor } from '../engine/memory.js';
import type { FileSource } from '../io/source.js';
import type { JobKind, JobKinds, JobPart, WorkProgress } from '../worker/jobs.js';
import type { OutputPath } from '../worker/protocol.js';
import { dispatch } from './job_loop.js';
import { Schedule, type WorkItem } from './job_queue.js';
import type { Pool, RunContext } from './pool.js';
import type { Advance } from './progress.js';

/** What a run works with. */
export interface Workshop {
  instance: Instance;
  pool: Pool;
  memory: MemoryPlan;
  open(source: Source): Promise<Model>;
}

/** Weight files of a model. */
interface Weights {
  weights: readonly FileSource[];
}

/** What workers get for a run: files of some models, packed tasks, and outputs by path (as in `ContextFiles`). */
export interface Materials {
  models: readonly Weights[];
  work: Uint8Array[];
  outputs?: (OutputPath | null)[];
}

/** Lends them to workers until `use` is done. */
export async function withMaterials<T>(
  pool: Pool,
  { models, work, outputs = [] }: Materials,
  use: (context: RunContext) => Promise<T>,
): Promise<T> {
  const inputs = models.map(({ weights }) => weights.map(({ remote }) => remote));
  const context = pool.context({ inputs, outputs, work }, async (input, file, offset, length) => {
    const source = models[input]?.weights[file];
    if (!source) throw new RangeError(`file ${file} of model ${input} does not exist`);
    return source.read(offset, length);
  });
  try {
    return await use(context);
  } finally {
    await pool.release(context);
  }
}

/** Runs the work of tensors whose errors alone are of interest. `bytes`: of the input in all, and in a job at most. */
export async function measureItems(
  { pool, memory }: Workshop,
  materials: Materials,
  items: WorkItem[],
  bytes: { input: number; job: number },
  signal: AbortSignal | undefined,
  onAdvance: (advance: Advance) => void = () => {},
): Promise<Schedule> {
  const { workers, shareBytes } = sizesFor(memory, bytes.input);
  const schedule = new Schedule(items, Math.min(bytes.job, shareBytes), workers);
  const sink = { accept() {}, hasRoom: () => true, changed: () => new Promise<void>(() => {}) };
  await withMaterials(pool, materials, (context) =>
    dispatch(pool, context, schedule, workers, sink, onAdvance, signal),
  );
  return schedule;
}

/** A job of one part, and what it is told. `label`: for messages; `bytes`: of input that it reads. */
interface SingleJob<K extends JobKind> {
  label: string;
  bytes: number;
  part: JobPart<K>;
}

/** Runs one job; nothing is written. Errors: those of the job, worker-crashed. */
export function runOne<K extends JobKind>(
  { pool }: Workshop,
  materials: Materials,
  { part, ...job }: SingleJob<K>,
  signal: AbortSignal | undefined,
  onProgress?: (progress: WorkProgress) => void,
): Promise<JobKinds[K]['result']> {
  signal?.throwIfAborted();
  return withMaterials(pool, materials, async (context) => {
    const { parts } = await pool.run(context, { ...job, parts: [part] }, signal, onProgress);
    return parts[0] as JobKinds[K]['result'];
  });
}
