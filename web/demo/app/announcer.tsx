// Announces changes to screen readers, in coarse steps so that a long run does not talk all the time.
import { useComputed } from '@preact/signals';
import { opened, opening } from '../open/opened';
import { keptRun, run } from '../run/runs';

const stepPercent = 25;

function sentence(): string {
  const current = run.value;
  if (current.state === 'running') {
    const { bytesDone = 0, bytesTotal = 0 } = current.progress ?? {};
    const percent = bytesTotal > 0 ? Math.floor((100 * bytesDone) / bytesTotal / stepPercent) * stepPercent : 0;
    return `Quantizing, ${percent} percent done.`;
  }
  if (current.state === 'cancelled') return 'Run cancelled. Nothing was saved.';
  if (opening.value) return `Opening ${opening.value}.`;
  const files = keptRun.value?.files;
  if (files && current.state === 'idle') return `Run finished, ${files.list.length} files are ready.`;
  if (opened.value) return `${opened.value.title} is open, ${opened.value.model.tensors.length} tensors.`;
  return '';
}

export function Announcer() {
  const text = useComputed(sentence);
  return (
    <p class="visually-hidden" aria-live="polite">
      {text.value}
    </p>
  );
}
