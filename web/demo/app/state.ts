// The whole state of the page. Features read and write these signals; nothing else is kept anywhere.
import { computed, signal } from '@preact/signals';
import type { Model, OutputFormat, Plan, Progress, Quantizer, Report } from 'wasmquant';
import type { OutputFile } from '../run/output';
import { explain, type Failure } from './failure';

/** Null until the WebAssembly module is compiled. */
export const quantizer = signal<Quantizer | null>(null);
export const startFailure = signal<Failure | null>(null);

export interface OpenedModel {
  model: Model;
  /** What to call it: a file name, or the number of files. */
  title: string;
}
export const opened = signal<OpenedModel | null>(null);
/** What is being opened, for the status line. */
export const opening = signal<string | null>(null);
export const openFailure = signal<Failure | null>(null);

export interface Choice {
  /** Name of a preset. */
  preset: string;
  format: OutputFormat;
  /** JSON text that replaces the preset's config; null = the preset as it is. */
  configText: string | null;
}
export const choice = signal<Choice>({ preset: '', format: 'compressed-tensors', configText: null });

export const presets = computed(() => quantizer.value?.presets() ?? []);
export const chosenPreset = computed(() => presets.value.find((preset) => preset.name === choice.value.preset) ?? null);

export type Planned = { plan: Plan; failure: null } | { plan: null; failure: Failure | null };
/** Follows the model and the choice; reads headers only, never weights. */
export const planned = computed<Planned>(() => {
  if (!quantizer.value || !opened.value || !choice.value.preset) return { plan: null, failure: null };
  try {
    const { preset, configText, format } = choice.value;
    return { plan: quantizer.value.plan(opened.value.model, configText ?? preset, { format }), failure: null };
  } catch (error) {
    return { plan: null, failure: explain(error, 'This config cannot be used') };
  }
});

/** Where finished files go: browser storage with download links, or straight into a folder on disk. */
export type Destination = 'download' | 'folder';
/** Null until the user decides; see `destination`. */
export const chosenDestination = signal<Destination | null>(null);
export const canWriteFolder = typeof window !== 'undefined' && 'showDirectoryPicker' in window;

/** Above this many bytes of output a folder is proposed: browser storage would hold a second copy of it. */
const folderProposedFromBytes = 1e9;
export const destination = computed<Destination>(() => {
  const bytesAfter = planned.value.plan?.totals.bytesAfter ?? 0;
  return chosenDestination.value ?? (canWriteFolder && bytesAfter > folderProposedFromBytes ? 'folder' : 'download');
});

export type Run =
  | { state: 'idle' }
  | { state: 'running'; progress: Progress | null; bytesPerSecond: number | null; cancelling: boolean }
  | { state: 'cancelled' }
  | { state: 'failed'; failure: Failure };
export const run = signal<Run>({ state: 'idle' });

/** A finished run. It stays, with its files, until the next run starts. */
export interface Result {
  report: Report;
  files: OutputFile[];
  /** Of what it is the result. */
  model: Model;
  choice: Choice;
  modelTitle: string;
  configTitle: string;
  /** Name of the folder on disk, or null when the files are in browser storage. */
  folder: string | null;
}
export const result = signal<Result | null>(null);

/** The report, when it belongs to what is chosen now. */
export const shownReport = computed<Report | null>(() => {
  const finished = result.value;
  const same =
    finished &&
    finished.model === opened.value?.model &&
    finished.choice.preset === choice.value.preset &&
    finished.choice.format === choice.value.format &&
    finished.choice.configText === choice.value.configText;
  return same ? finished.report : null;
});
