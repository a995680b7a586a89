import { useEffect, useRef } from 'preact/hooks';
import { bytesText } from '../../present/units';
import { FailureMessage } from '../app/failure';
import { keptRun } from './runs';
import { saveZip, zipFailure, zipping } from './save-zip';

export function SavedFiles() {
  const heading = useRef<HTMLHeadingElement>(null);
  const finished = keptRun.value;
  useEffect(() => {
    if (finished && document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [finished]);
  if (!finished?.files) return null;
  const { modelTitle, configTitle } = finished;
  const { list, folder, handle } = finished.files;
  return (
    <div class="saved">
      <h3 ref={heading} tabIndex={-1}>
        {folder === null ? 'Ready to save' : handle.kind === 'file' ? `Saved as ${folder}` : `Saved in ${folder}`}
      </h3>
      <p class="fine">
        {modelTitle}, {configTitle}
      </p>
      <ul>
        {list.map((file) => (
          <li key={file.name}>
            {file.url ? (
              <a href={file.url} download={file.name}>
                <span>
                  <span aria-hidden="true">↓ </span>
                  {file.name}
                </span>
                <span class="fine">{bytesText(file.bytes)}</span>
              </a>
            ) : (
              <p>
                {file.name} <span class="fine">{bytesText(file.bytes)}</span>
              </p>
            )}
          </li>
        ))}
      </ul>
      {folder === null && list.length > 1 && (
        <button type="button" class="button" disabled={zipping.value} onClick={() => void saveZip(finished)}>
          {zipping.value ? 'Packing…' : 'Save all as one zip'}
        </button>
      )}
      {zipFailure.value && <FailureMessage failure={zipFailure.value} />}
      {folder === null && <p class="fine">Kept in this browser until the next run or until you close the page.</p>}
    </div>
  );
}
