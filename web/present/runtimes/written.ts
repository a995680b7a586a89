// What load lines are made from, and what they are.
import type { Model, RunReport } from 'wasmquant';
import type { OutputFormatInfo } from 'wasmquant/internal';

/** What one program needs: commands, code or a sentence. */
export interface LoadText {
  title: string;
  lines: string[];
}

/** A run that has ended, and where its files are. */
export interface Written {
  model: Pick<Model, 'config' | 'metadata'>;
  report: Pick<RunReport, 'files' | 'tensors' | 'diagnostics'>;
  format: OutputFormatInfo;
  /** Whether one folder contains config.json and all weights; a single file must first be moved into a model's folder. */
  isFolder: boolean;
  /** Whether the source has modules.json of sentence-transformers. */
  hasModules: boolean;
  /** Whether the tower and projector of a model that sees images were written, in place of its language model. */
  isProjector?: boolean;
  /** The path of a written file; without a name that of the folder, or of the only file. */
  pathOf(file?: string): string;
}
