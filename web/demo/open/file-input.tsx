// A button that chooses files, or a folder.
import { quantizer } from '../app/engine';
import { run } from '../run/runs';
import { acceptedFiles } from './accepted-files';
import { openFiles, openFolder } from './open-model';
import { opening } from './opened';

export const cannotOpen = () => !quantizer.value || opening.value !== null || run.value.state === 'running';

interface Properties {
  id: string;
  title: string;
  look: string;
  isFolder?: boolean;
}

export function FileInput({ id, title, look, isFolder = false }: Properties) {
  const choose = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const files = [...(input.files ?? [])];
    // Cleared so that the same file can be chosen again after a change.
    input.value = '';
    if (files.length > 0) void (isFolder ? openFolder(files) : openFiles(files));
  };
  return (
    <span class="file-button">
      <input
        id={id}
        type="file"
        multiple
        disabled={cannotOpen()}
        onChange={choose}
        {...(isFolder ? { webkitdirectory: true } : { accept: acceptedFiles })}
      />
      <label for={id} class={look}>
        {title}
      </label>
    </span>
  );
}
