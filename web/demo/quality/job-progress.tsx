import { FailureMessage } from '../app/failure';
import { cancelJob, job, jobFailure } from './job';

/** Of the job with that title, or of all others than some; without either of any. */
export function JobProgress({ title, except = [] }: { title?: string; except?: readonly string[] }) {
  const current = job.value;
  if (!current) {
    const failure = jobFailure.value;
    const isOwn =
      failure && (title ? failure.title.startsWith(title) : !except.some((other) => failure.title.startsWith(other)));
    return isOwn ? <FailureMessage failure={failure} /> : null;
  }
  if (title ? current.title !== title : except.includes(current.title)) return null;
  const { bytesDone = 0, bytesTotal = 0, tensor } = current.progress ?? {};
  return (
    <div class="run-progress">
      <progress aria-label={current.title} max={bytesTotal || 1} value={bytesDone} />
      <p class="run-facts">
        {current.title}, {bytesTotal > 0 ? Math.floor((100 * bytesDone) / bytesTotal) : 0} %
      </p>
      {tensor && (
        <p class="fine run-tensor">
          <code>{tensor}</code>
        </p>
      )}
      <button type="button" class="button" disabled={current.cancelling} onClick={cancelJob}>
        {current.cancelling ? 'Cancelling…' : 'Cancel'}
      </button>
    </div>
  );
}
