import { FailureMessage } from '../app/failure';
import { cancelJob, job, jobFailure } from './job';

export function JobProgress() {
  const current = job.value;
  if (!current) return jobFailure.value && <FailureMessage failure={jobFailure.value} />;
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
