// The whole window accepts drops, so that a near miss does not navigate away.
import { signal } from '@preact/signals';
import { droppedFiles } from './dropped-files';
import { openDrop } from './open-model';

/** Whether files are dragged over the page. */
export const isDragged = signal(false);

const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;

export function acceptDrops(): void {
  window.addEventListener('dragover', (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    isDragged.value = true;
  });
  window.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) isDragged.value = false;
  });
  window.addEventListener('drop', (event) => {
    if (!carriesFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    isDragged.value = false;
    void openDrop(droppedFiles(event.dataTransfer));
  });
}
