// Which of the three states the page is in: before a model, choosing, or the result of a run.
import { computed, signal } from '@preact/signals';
import { opened } from '../open/opened';
import { type FinishedRun, runs } from '../run/runs';

export type Stage = 'open' | 'choose' | 'result';

const wanted = signal<Stage>('choose');

/** The newest run of the model on screen. */
export const lastRun = computed<FinishedRun | null>(
  () => runs.value.findLast(({ model }) => model === opened.value?.model) ?? null,
);

export const stage = computed<Stage>(() => {
  if (!opened.value) return 'open';
  return wanted.value === 'result' && !lastRun.value ? 'choose' : wanted.value;
});

export function showStage(next: Stage): void {
  wanted.value = next;
  scrollTo(0, 0);
}

// Another model is chosen for anew; a finished run is shown.
let model = opened.peek()?.model;
opened.subscribe((now) => {
  if (now?.model === model) return;
  model = now?.model;
  wanted.value = 'choose';
});
let finished = runs.peek().length;
runs.subscribe((list) => {
  if (list.length > finished) showStage('result');
  finished = list.length;
});
