// Where files are dropped or chosen, or an address is pasted.

import { cannotOpen, FileInput } from './file-input';
import { openSample } from './open-model';
import { UrlField } from './url-field';
import { isDragged } from './window-drop';

export function DropZone() {
  const over = isDragged.value;
  return (
    <div class={`drop-zone ${over ? 'drop-zone-over' : ''}`}>
      <p>
        {over ? (
          <b>Let go to open</b>
        ) : (
          <>
            <b>Drop a model here</b>: safetensors, GGUF, ONNX, NumPy, or a whole folder
          </>
        )}
      </p>
      <div class="drop-zone-actions">
        <FileInput id="files" title="Choose files" look="button button-primary" />
        <FileInput id="folder" title="Choose a folder" look="button" isFolder />
        <button type="button" class="button" disabled={cannotOpen()} onClick={() => void openSample()}>
          Try the sample
        </button>
      </div>
      <UrlField />
    </div>
  );
}
