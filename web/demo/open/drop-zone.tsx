// File input and drop target. The whole window accepts drops, so that a near miss does not navigate away.
import { useSignal, useSignalEffect } from '@preact/signals';
import { quantizer } from '../app/engine';
import { isBusy } from '../quality/job';
import { acceptedFiles, extensionsText } from './accepted-files';
import { droppedFiles } from './dropped-files';
import { openDrop, openFiles, openSample } from './open-model';
import { opened, opening } from './opened';

export function DropZone() {
  const over = useSignal(false);
  const busy = !quantizer.value || opening.value !== null || isBusy.value;

  useSignalEffect(() => {
    const listeners = new AbortController();
    const { signal } = listeners;
    const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    window.addEventListener(
      'dragover',
      (event) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        over.value = true;
      },
      { signal },
    );
    window.addEventListener(
      'dragleave',
      (event) => {
        if (event.relatedTarget === null) over.value = false;
      },
      { signal },
    );
    window.addEventListener(
      'drop',
      (event) => {
        if (!carriesFiles(event) || !event.dataTransfer) return;
        event.preventDefault();
        over.value = false;
        void openDrop(droppedFiles(event.dataTransfer));
      },
      { signal },
    );
    return () => listeners.abort();
  });

  const choose = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const files = [...(input.files ?? [])];
    // Cleared so that the same file can be chosen again after a change.
    input.value = '';
    if (files.length > 0) void openFiles(files);
  };

  return (
    <div class={`drop-zone ${over.value ? 'drop-zone-over' : ''}`}>
      <p>{over.value ? 'Let go to open' : `Drop ${extensionsText} files, or a model folder here`}</p>
      <div class="drop-zone-actions">
        <span class="file-button">
          <input id="files" type="file" multiple accept={acceptedFiles} disabled={busy} onChange={choose} />
          <label for="files" class="button">
            Choose files…
          </label>
        </span>
        <button type="button" class="button" disabled={busy} onClick={() => void openSample()}>
          {opened.value ? 'Open the sample' : 'Try the sample'}
        </button>
      </div>
    </div>
  );
}
