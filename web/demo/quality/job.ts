// Measuring and planning: one job at a time, never during a run, with progress and cancel.
import { computed, effect, signal } from '@preact/signals';
import type { Progress } from 'wasmquant';
import { explain, type Failure } from '../app/failure';
import { run } from '../run/runs';

export interface Job {
  title: string;
  progress: Progress | null;
  cancelling: boolean;
}

export const job = signal<Job | null>(null);
/** How the last one ended. */
export const jobFailure = signal<Failure | null>(null);
export const isBusy = computed(() => job.value !== null || run.value.state === 'running');

let controller: AbortController | null = null;

export function cancelJob(): void {
  if (job.value) job.value = { ...job.value, cancelling: true };
  controller?.abort();
}

/** Cancels the job, if there is one, and waits for its end. */
export function endJob(): Promise<void> {
  cancelJob();
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (job.value === null)
        queueMicrotask(() => {
          stop();
          resolve();
        });
    });
  });
}

/** Passes `work` a signal and a progress callback. Failures are shown, cancels are not. */
export async function runJob(
  title: string,
  work: (signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<void>,
): Promise<void> {
  if (isBusy.value) return;
  controller = new AbortController();
  const { signal } = controller;
  jobFailure.value = null;
  job.value = { title, progress: null, cancelling: false };
  try {
    await work(signal, (progress) => {
      if (job.value) job.value = { ...job.value, progress };
    });
  } catch (error) {
    if (!signal.aborted) jobFailure.value = explain(error, `${title} failed`);
  } finally {
    job.value = null;
    controller = null;
  }
}
