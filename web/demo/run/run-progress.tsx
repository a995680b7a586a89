import { useEffect, useRef } from 'preact/hooks';
import type { Progress } from 'wasmquant';
import { bytesText, countText, durationText } from '../../present/units';
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
    `${bytesText(bytesDone)} of ${bytesText(bytesTotal)}`,
    bytesPerSecond !== null && `${bytesText(bytesPerSecond)}/s`,
    bytesPerSecond !== null && `${durationText((1000 * (bytesTotal - bytesDone)) / bytesPerSecond)} left`,
  ].filter(Boolean);
  return (
    <div class="run-progress">
      {sample ? (
        <>
          <progress aria-label="Calibration" max={sample.count} value={sample.index - 1} />
          <p class="run-facts">
            {`Running the model on sample ${countText(sample.index)} of ${countText(sample.count)}`}
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
        {progress && `${countText(progress.index)} of ${countText(progress.count)} tensors`}
        {memoryBytes !== undefined && ` · ${bytesText(memoryBytes)} of engine memory`}
        {progress?.tensor && <code>{progress.tensor}</code>}
      </p>
      <button ref={cancel} type="button" class="button" disabled={cancelling} onClick={cancelRun}>
        {cancelling ? 'Cancelling…' : 'Cancel'}
      </button>
    </div>
  );
}
