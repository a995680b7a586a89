// The values of a weight before and after, and the grid as lines, with the range outside it shaded. Counts from one value to millions stand
// on one logarithmic axis, of 1 + count.
import { useRef } from 'preact/hooks';
import type { Distribution } from 'wasmquant';
import { multiples, stepFor } from '../../present/axis';
import { useWidth } from '../app/width';

const frame = { height: 190, left: 44, right: 12, top: 8, bottom: 24 };
/** Between numbers of the axis of values, in pixels. */
const roomOfValue = 90;

const heightOf = (count: number) => Math.log10(1 + count);

/** Counts to mark: 0 and powers of ten up to 10^`highest`, at most five in all; 1 only where it is not too close to 0. */
function marksTo(highest: number): number[] {
  const powers = Array.from({ length: Math.ceil(highest) }, (_, power) => power);
  const step = Math.ceil(powers.length / 4);
  const first = highest > 2 ? step : 0;
  return [0, ...powers.filter((power) => power >= first && power % step === 0).map((power) => 10 ** power)];
}

const countText = (count: number) => (count < 1000 ? `${count}` : count < 1e6 ? `${count / 1000}k` : `${count / 1e6}M`);

/** Digits that a multiple of `step` needs. */
const digitsOf = (step: number) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));

export function Histogram({ found, label }: { found: Distribution; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place, 640).value;
  const { low, high, grid, original, quantized } = found;
  const [left, right, bottom] = [frame.left, width - frame.right, frame.height - frame.bottom];
  const x = (value: number) => left + ((value - low) / (high - low || 1)) * (right - left);
  const highest = 1.05 * Math.max(heightOf(1), ...[original, quantized].map((counts) => heightOf(Math.max(...counts))));
  const y = (count: number) => bottom - (heightOf(count) / highest) * (bottom - frame.top);
  const edge = (bin: number) => (left + (bin / original.length) * (right - left)).toFixed(1);
  const outline = (counts: Distribution['original']) =>
    `M${left} ${bottom}${Array.from(counts, (count, bin) => `V${y(count).toFixed(1)}H${edge(bin + 1)}`).join('')}V${bottom}`;
  const step = stepFor(high - low, Math.max(2, (right - left) / roomOfValue));
  const [first = low, last = high] = grid ? [grid[0], grid.at(-1)] : [];
  return (
    <div ref={place} class="histogram-plot">
      <svg width={width} height={frame.height} role="img" aria-label={label}>
        <rect
          class="histogram-beyond"
          x={left}
          y={frame.top}
          width={Math.max(0, x(first) - left)}
          height={bottom - frame.top}
        />
        <rect
          class="histogram-beyond"
          x={x(last)}
          y={frame.top}
          width={Math.max(0, right - x(last))}
          height={bottom - frame.top}
        />
        <path
          class="histogram-grid"
          d={Array.from(grid ?? [], (value) => `M${x(value).toFixed(1)} ${frame.top}V${bottom}`).join('')}
        />
        <path class="histogram-before" d={outline(original)} />
        <path class="histogram-after" d={outline(quantized)} />
        <path class="histogram-axis" d={`M${left} ${frame.top}V${bottom}H${right}`} />
        {marksTo(highest).map((count) => (
          <text key={count} x={left - 6} y={y(count) + 4} text-anchor="end">
            {countText(count)}
          </text>
        ))}
        {multiples(low, high, step).map((value) => (
          <text key={value} x={x(value)} y={frame.height - 6} text-anchor="middle">
            {value.toFixed(digitsOf(step))}
          </text>
        ))}
      </svg>
    </div>
  );
}
