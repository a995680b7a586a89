// The model on screen.
import { signal } from '@preact/signals';
import type { Model } from 'wasmquant';
import type { Failure } from '../app/failure';

export interface OpenedModel {
  model: Model;
  /** Its name: a file name, or the number of files. */
  title: string;
  /** The model as a command line names it: a URL, a folder or a file. */
  location: string;
  /** Whether its bytes come from a network. */
  isRemote?: true;
  /** Whether it is the sample model. */
  isSample?: true;
}

export const opened = signal<OpenedModel | null>(null);
/** What is being opened, for the status line. */
export const opening = signal<string | null>(null);
export const openFailure = signal<Failure | null>(null);
