// What a visitor will see: the curve of the sample, as `node tests/bench/sample_curve.mjs` measured it.
import { elementsText } from '../../present/units';
import { percent } from '../../present/verdict';
import { CurvePlot } from '../curve/plot';
import measured from './sample_curve.json';

const { original, points, parameters, windows } = measured;
const best = points.find(({ isBest }) => isBest);

export function SampleCurve() {
  const shown = points.map(({ name, bytes, loss, onFrontier, isBest = false, isCalibrated = false }) => ({
    id: name,
    bytes,
    loss,
    label: name,
    isChosen: isBest,
    onFrontier,
    isMeasured: true,
    isCalibrated,
    text: name,
  }));
  const sentence =
    best &&
    `${(original.bytes / best.bytes).toFixed(1)}× smaller with ${percent(best.loss / original.loss - 1)} more loss after calibration.`;
  return (
    <section class="card first-curve" aria-labelledby="what-you-see">
      <h2 id="what-you-see" class="over">
        What you will see <span>the sample, {elementsText(parameters)} parameters, measured</span>
      </h2>
      <CurvePlot
        points={shown}
        original={{ ...original, label: 'float32' }}
        kind="bits-per-byte"
        height={400}
        label={`Size of the file against loss for ${points.length} schemes. ${sentence}`}
      />
      <p class="fine">
        {sentence} Every point is a run on {windows} windows of text, not an estimate.
      </p>
    </section>
  );
}
