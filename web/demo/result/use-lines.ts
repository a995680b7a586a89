// How to load what was written.
import { formats } from 'wasmquant/internal';
import { type LoadText, loadTexts } from '../../present/runtimes/load_lines';
import type { FinishedRun } from '../run/runs';

/** A name for the folder that the files are put into. */
export function folderName({ modelTitle, choice }: FinishedRun): string {
  const stem = modelTitle
    .replace(/\.\w+$/, '')
    .replace(/[^\w.]+/g, ' ')
    .trim()
    .replaceAll(' ', '-');
  return `${stem || 'model'}-${choice.preset}`;
}

/** Of files that are whole models, the name that was picked, or their own; other files are in a folder. */
export function useTexts(done: FinishedRun): LoadText[] {
  const { files } = done;
  const picked = files?.handle.kind === 'file' ? files.folder : null;
  const pathOf = (file?: string) => picked ?? file ?? `./${folderName(done)}`;
  return loadTexts(formats, { ...done, isFolder: true, pathOf });
}
