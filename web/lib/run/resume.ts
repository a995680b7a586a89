// Resumes interrupted runs file by file. The errors of a finished file's tensors are kept with it, for the report.

import { failure } from '../api/errors.js';
import type { RunIdentity, TensorError } from '../api/types.js';
import type { FileSource } from '../io/file_source.js';
import type { OutputTarget, Work } from '../io/target.js';
import type { PackedPlan } from '../plan/packed_plan.js';
import { filesDigest, inputText } from './run_identity.js';

export interface Resumed {
  /** Indexes of finished output files. */
  files: ReadonlySet<number>;
  /** Errors of the tasks in them. */
  errors: Map<number, TensorError | null>;
  /** Call when a file is complete. `errorOf`: of a task. */
  keep(file: number, errorOf: (task: number) => TensorError | null): Promise<void>;
}

const textOfError = (error: TensorError | null) =>
  error && [
    ...[error.sqnrDb, error.mse, error.maxAbs, error.cosine].map(String), // JSON has no infinity
    ...(error.nonFinite ? [String(error.nonFinite.reference), String(error.nonFinite.quantized)] : []),
  ];

function errorOfText(text: string[] | null): TensorError | null {
  if (text === null) return null;
  const [sqnrDb = Number.NaN, mse = Number.NaN, maxAbs = Number.NaN, cosine = Number.NaN, reference, quantized] =
    text.map(Number);
  const error = { sqnrDb, mse, maxAbs, cosine };
  return reference === undefined || quantized === undefined ? error : { ...error, nonFinite: { reference, quantized } };
}

/** Resumes an interrupted run into `target`. Errors: argument-invalid (a target or inputs that cannot be resumed), target-invalid (the
 * interrupted run was of other work). */
export async function resumeOutput(
  target: OutputTarget,
  inputs: readonly FileSource[],
  run: PackedPlan,
  { library, tasks }: RunIdentity,
): Promise<Resumed> {
  if (!target.resume || !target.keep)
    throw failure('argument-invalid', 'resume', 'only runs into a folder, by its path in Node, can be resumed');
  const { items, files } = run;
  const work: Work = { library, inputs: inputs.map(inputText), plan: `${tasks} ${filesDigest(run)}` };
  const notes = await target.resume(work);
  const written = items.map(({ outputs }) => outputs);
  const isFinished = (file: number) => notes.has(files[file]?.name ?? '');
  const finished = new Set([...files.keys()].filter(isFinished));
  // A tensor in two files is made again, and both files with it.
  for (const own of written) if (!own.every(isFinished)) for (const file of own) finished.delete(file);
  const errors = new Map<number, TensorError | null>();
  for (const file of finished) {
    const note = JSON.parse(notes.get(files[file]?.name ?? '') ?? '[]') as [number, string[] | null][];
    for (const [task, error] of note) errors.set(task, errorOfText(error));
  }
  return {
    files: finished,
    errors,
    async keep(file, errorOf) {
      const own = [...written.keys()].filter((task) => written[task]?.includes(file));
      const note = own.map((task) => [task, textOfError(errorOf(task))]);
      await target.keep?.(files[file]?.name ?? '', JSON.stringify(note));
    },
  };
}
