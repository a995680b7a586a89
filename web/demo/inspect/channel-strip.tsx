// Error of each channel as a strip: one column per channel, or the worst of several if there are more than pixels.
import { useEffect, useRef } from 'preact/hooks';
import { countText } from '../../present/units';
import { percent } from '../../present/verdict';
import { rangesOf, relativeError, wordOf } from '../report/errors';

const stripColumns = 512;

/** The lowest of each run of channels, at most `stripColumns` runs. */
function columnsOf(sqnr: Float64Array): number[] {
  const columns = Math.min(stripColumns, sqnr.length);
  return Array.from({ length: columns }, (_, column) => {
    const [first, last] = [column, column + 1].map((edge) => Math.floor((edge * sqnr.length) / columns));
    return Math.min(...sqnr.subarray(first, last));
  });
}

function draw(canvas: HTMLCanvasElement, sqnr: Float64Array): void {
  const values = columnsOf(sqnr);
  const finite = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  canvas.width = values.length;
  canvas.height = 1;
  const context = canvas.getContext('2d');
  if (!context) return;
  const style = getComputedStyle(canvas);
  context.fillStyle = style.getPropertyValue('--plot-good').trim();
  context.fillRect(0, 0, values.length, 1);
  context.fillStyle = style.getPropertyValue('--plot-bad').trim();
  for (const [column, value] of values.entries()) {
    const goodness = Number.isFinite(value) ? (high > low ? (value - low) / (high - low) : 0.5) : value > 0 ? 1 : 0;
    context.globalAlpha = 1 - goodness;
    context.fillRect(column, 0, 1, 1);
  }
}

export function ChannelStrip({ sqnr }: { sqnr: Float64Array }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, sqnr);
  }, [sqnr]);
  const worst = sqnr.reduce((best, value, channel) => (value < (sqnr[best] ?? value) ? channel : best), 0);
  const sorted = sqnr.toSorted();
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const said = (db: number) => {
    const error = relativeError(db) ?? 0;
    return `${percent(error)} (${wordOf('weight error', error)})`;
  };
  const text = `${countText(sqnr.length)} channels: median error ${said(median)}, largest ${said(sqnr[worst] ?? median)} in channel ${worst}`;
  return (
    <figure class="channel-strip">
      <canvas ref={canvas} role="img" aria-label={`Error per channel. ${text}`} />
      <figcaption class="fine">
        <span class="strip-scale" aria-hidden="true">
          least <span class="strip-colours" /> largest
        </span>{' '}
        {text}; {rangesOf('weight error')}
      </figcaption>
    </figure>
  );
}
