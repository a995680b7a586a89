// The output of the newest run, opened as a model to read values from.
import type { Model } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { quantizer } from '../app/engine';
import { type FinishedRun, keptRun, type RunFiles, runs } from '../run/runs';

let opened: { files: RunFiles; model: Promise<Model> } | null = null;

/** What can be opened. */
export async function filesOf({ handle }: RunFiles): Promise<File | File[]> {
  if (handle.kind === 'file') return await (handle as FileSystemFileHandle).getFile();
  const files: File[] = [];
  for await (const entry of (handle as FileSystemDirectoryHandle).values()) {
    // Desktops add hidden files to folders.
    if (entry.kind === 'file' && !entry.name.startsWith('.'))
      files.push(await (entry as FileSystemFileHandle).getFile());
  }
  return files;
}

async function openFiles(files: RunFiles): Promise<Model> {
  if (!quantizer.value) throw new Error('The quantizer has not started.');
  return await quantizer.value.open(await filesOf(files));
}

/** Whether values of a run can be read back. */
export function canLookInto({ files }: FinishedRun): boolean {
  return files !== null;
}

/** The newest run of the model, if its output can be run as a model. */
export function runnableRun(model: Model): FinishedRun | null {
  const kept = keptRun.value;
  if (kept?.model !== model || kept.files === null) return null;
  return formats.inputs[formats.outputs[kept.plan.format].container].hasGraph ? null : kept;
}

/** A model that could not be opened was reported by its caller. */
function closed(model: Promise<Model>): Promise<void> {
  return model.then(
    (made) => made.close(),
    () => {},
  );
}

/** The same model until another run replaces it. */
export async function modelOf(run: FinishedRun): Promise<Model> {
  const { files } = run;
  if (!files) throw new Error('The files of this run are gone; run it again.');
  if (opened?.files !== files) {
    if (opened) void closed(opened.model);
    opened = { files, model: openFiles(files) };
  }
  return await opened.model;
}

runs.subscribe((list) => {
  if (!opened || list.some(({ files }) => files === opened?.files)) return;
  void closed(opened.model);
  opened = null;
});
