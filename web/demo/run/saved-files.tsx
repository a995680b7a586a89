// The files of a run: the button that saves them, and each one by name.
import { bytesText, plural } from '../../present/units';
import { FailureMessage } from '../app/failure';
import type { FinishedRun } from './runs';
import { saveZip, zipFailure, zipping } from './save-zip';

export function SaveButton({ done }: { done: FinishedRun }) {
  const { files } = done;
  if (!files || files.folder !== null) return null;
  const [only] = files.list;
  // The size that was announced; small files of a folder come on top.
  const text = `Save ${bytesText(done.report.totals.bytesAfter)}`;
  if (files.list.length === 1 && only?.url)
    return (
      <a class="button button-primary button-large" href={only.url} download={only.name}>
        {text}
      </a>
    );
  return (
    <button
      type="button"
      class="button button-primary button-large"
      disabled={zipping.value}
      onClick={() => void saveZip(done)}
    >
      {zipping.value ? 'Packing…' : text}
    </button>
  );
}

export function SavedFiles({ done }: { done: FinishedRun }) {
  const { files } = done;
  if (!files) return <p class="fine">Its files made room for those of another run.</p>;
  const { list, folder, handle } = files;
  return (
    <div class="saved">
      {folder !== null && (
        <h2 class="saved-place">{handle.kind === 'file' ? `Saved as ${folder}` : `Saved in ${folder}`}</h2>
      )}
      <details class="saved-files">
        <summary>
          {folder === null ? `Ready to save: ${plural(list.length, 'file')}` : plural(list.length, 'file')}
          {folder === null && list.length > 1 && ', in one zip'}
        </summary>
        <ul>
          {list.map((file) => (
            <li key={file.name}>
              {file.url ? (
                <a href={file.url} download={file.name}>
                  {file.name}
                </a>
              ) : (
                file.name
              )}{' '}
              <span class="fine">{bytesText(file.bytes)}</span>
            </li>
          ))}
        </ul>
        {folder === null && <p class="fine">Kept in this browser until the next run or until you close the page.</p>}
      </details>
      {zipFailure.value && <FailureMessage failure={zipFailure.value} />}
    </div>
  );
}
