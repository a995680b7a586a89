import { useEffect, useRef } from 'preact/hooks';
import type { Progress } from 'wasmquant';
import { bytes, count, duration } from '../app/figures';
import { runningSample } from '../feeds/feeds';
import { cancelRun } from './start-run';

interface Properties {
  progress: Progress | null;
  bytesPerSecond: number | null;
  cancelling: boolean;
}

export function RunProgress({ progress, bytesPerSecond, cancelling }: Properties) {
  const sample = runningSample.value;
  const cancel = useRef<HTMLButtonElement>(null);
  useEffect(() => cancel.current?.focus({ preventScroll: true }), []);
  const { bytesDone = 0, bytesTotal = 0, memoryBytes } = progress ?? {};
  const facts = [
    `${bytes(bytesDone)} of ${bytes(bytesTotal)}`,
    bytesPerSecond !== null && `${bytes(bytesPerSecond)}/s`,
    bytesPerSecond !== null && `${duration((bytesTotal - bytesDone) / bytesPerSecond)} left`,
  ].filter(Boolean);
  return (
    <div class="run-progress">
      {sample ? (
        <>
          <progress aria-label="Calibration" max={sample.count} value={sample.index - 1} />
          <p class="run-facts">
            {`Running the model on sample ${count(sample.index)} of ${count(sample.count)}`}
            {sample.pass > 1 && ', for the second time'}
          </p>
        </>
      ) : (
        <>
          <progress aria-label="Run" max={bytesTotal || 1} value={bytesDone} />
          <p class="run-facts">{progress ? facts.join(' · ') : 'Starting the workers…'}</p>
        </>
      )}
      <p class="fine run-tensor">
        {progress && `${count(progress.index)} of ${count(progress.count)} tensors`}
        {memoryBytes !== undefined && ` · ${bytes(memoryBytes)} of engine memory`}
        {progress?.tensor && <code>{progress.tensor}</code>}
      </p>
      <button ref={cancel} type="button" class="button" disabled={cancelling} onClick={cancelRun}>
        {cancelling ? 'Cancelling…' : 'Cancel'}
      </button>
    </div>
  );
}
