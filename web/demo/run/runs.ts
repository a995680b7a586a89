// The current run, and the finished ones of this visit, oldest first. Each keeps its plan and report, so that any two
// can be compared; only the newest keeps its files.
import { computed, signal } from '@preact/signals';
import type { Model, Plan, Progress, RunReport } from 'wasmquant';
import type { Failure } from '../app/failure';
import { type Choice, choice, isSameChoice } from '../configure/choice';
import { opened } from '../open/opened';
import type { OutputFile, Place } from './output';

export type Run =
  | { state: 'idle' }
  | { state: 'running'; progress: Progress | null; bytesPerSecond: number | null; cancelling: boolean }
  | { state: 'cancelled' }
  | { state: 'failed'; failure: Failure };
export const run = signal<Run>({ state: 'idle' });

/** The files of a run, while they are kept. */
export interface RunFiles {
  list: OutputFile[];
  handle: Place;
  /** Name of the folder or file on disk, or null when the files are in browser storage. */
  folder: string | null;
}

export interface FinishedRun {
  /** Counts from 1 in the order of runs. */
  number: number;
  plan: Plan;
  report: RunReport;
  /** The source model. */
  model: Model;
  choice: Choice;
  /** The config used, from a preset or custom. */
  config: Record<string, unknown>;
  modelTitle: string;
  configTitle: string;
  /** Whether the source has modules.json of sentence-transformers. */
  hasModules: boolean;
  files: RunFiles | null;
}

export const runs = signal<FinishedRun[]>([]);

/** The run whose files can be saved. */
export const keptRun = computed(() => runs.value.findLast(({ files }) => files !== null) ?? null);

/** The newest run of the current choice. */
export const shownRun = computed(
  () =>
    runs.value.findLast((done) => done.model === opened.value?.model && isSameChoice(done.choice, choice.value)) ??
    null,
);
export const shownReport = computed<RunReport | null>(() => shownRun.value?.report ?? null);
