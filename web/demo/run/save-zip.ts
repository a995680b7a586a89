// All files of a run as one zip archive (stored, not compressed: quantized weights hardly shrink). It is streamed to
// browser storage and downloaded from there; where that has no room for a second copy, into a file that is picked. Never
// to memory.
import { signal } from '@preact/signals';
import { explain, type Failure } from '../app/failure';
import type { Output } from './output';
import { pick } from './pick-file';
import { createRunFolder, filesIn } from './run-folder';
import { type FinishedRun, runs } from './runs';

export const zipping = signal(false);
export const zipFailure = signal<Failure | null>(null);

/** Browser storage of the last archive, kept while its run has files: the download may still be in progress. */
let kept: { run: number; output: Output } | null = null;

type Named = Awaited<ReturnType<typeof filesIn>>[number];

const filesOf = ({ files }: FinishedRun): Promise<Named[]> => filesIn(files?.handle as FileSystemDirectoryHandle);

async function writeZip(files: Named[], target: FileSystemFileHandle): Promise<void> {
  const { downloadZip } = await import('client-zip');
  const writable = await target.createWritable();
  const entries = files.map(({ name, file }) => ({ name, input: file, lastModified: new Date(file.lastModified) }));
  // Errors abort the stream and thus the file.
  await downloadZip(entries, { buffersAreUTF8: true }).body?.pipeTo(writable);
}

async function throughStorage(run: FinishedRun, files: Named[], name: string): Promise<void> {
  await kept?.output.remove();
  const output = await createRunFolder(files.reduce((sum, { file }) => sum + file.size, 0));
  kept = { run: run.number, output };
  await writeZip(files, await output.handle.getFileHandle(name, { create: true }));
  const [made] = await output.files(run.report);
  const link = document.createElement('a');
  link.href = made?.url ?? '';
  link.download = name;
  link.click();
}

/** Whether browser storage has room for an archive of the run. */
async function hasRoom({ files }: FinishedRun): Promise<boolean> {
  const { quota = Number.POSITIVE_INFINITY, usage = 0 } = await navigator.storage.estimate();
  const bytes = files?.list.reduce((sum, file) => sum + file.bytes, 0) ?? 0;
  return bytes < (quota - usage) / 2;
}

/** Must be called from a click: a file may be picked. */
export async function saveZip(run: FinishedRun): Promise<void> {
  const name = `${run.modelTitle
    .replace(/\.\w+$/, '')
    .replace(/[^\w.]+/g, ' ')
    .trim()
    .replaceAll(' ', '-')}-quantized.zip`;
  zipFailure.value = null;
  try {
    const picks = window.showSaveFilePicker !== undefined && !(await hasRoom(run));
    const picked = picks ? await pick(name) : null;
    if (picks && !picked) return;
    zipping.value = true;
    const files = await filesOf(run);
    if (picked) await writeZip(files, picked);
    else await throughStorage(run, files, name);
  } catch (error) {
    zipFailure.value = explain(error, 'The archive could not be saved');
  } finally {
    zipping.value = false;
  }
}

runs.subscribe((list) => {
  const former = kept;
  if (!former || list.some(({ number, files }) => number === former.run && files !== null)) return;
  kept = null;
  void former.output.remove();
});
