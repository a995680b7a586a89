// The histogram of a weight before and after, drawn by uPlot. Loaded with the first plot.

import uPlot from 'uplot';
import type { Distribution } from 'wasmquant';
import 'uplot/dist/uPlot.min.css';

const height = 190;

function colour(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** Draws the grid as ticks, and shades the range outside it. */
function gridOf({ grid, low, high }: Distribution, element: Element) {
  return (plot: uPlot) => {
    if (!grid || grid.length === 0) return;
    const { ctx, bbox } = plot;
    const at = (value: number) => Math.round(plot.valToPos(value, 'x', true));
    ctx.save();
    ctx.fillStyle = colour(element, '--warning-soft');
    const [first = low, last = high] = [grid[0], grid.at(-1)];
    ctx.fillRect(bbox.left, bbox.top, Math.max(0, at(first) - bbox.left), bbox.height);
    ctx.fillRect(at(last), bbox.top, Math.max(0, bbox.left + bbox.width - at(last)), bbox.height);
    ctx.strokeStyle = colour(element, '--line-strong');
    ctx.globalAlpha = 0.55;
    ctx.beginPath();
    for (const value of grid) {
      ctx.moveTo(at(value) + 0.5, bbox.top);
      ctx.lineTo(at(value) + 0.5, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  };
}

/** Counts from one value to millions are visible on one axis, which both curves share. */
const heightOf = (count: number) => Math.log10(1 + count);
const heightsOf = (counts: ArrayLike<number>) => Array.from(counts, heightOf);

/** Marks at 0, 1, 10, 100 … and at no more than five heights. */
function marksTo(highest: number): number[] {
  const powers = Array.from({ length: Math.ceil(highest) }, (_, power) => 10 ** power);
  const step = Math.ceil(powers.length / 4);
  return [0, ...powers.filter((_, power) => power % step === 0)].map(heightOf);
}
const markText = (mark: number) => {
  const count = Math.round(10 ** mark - 1);
  return count < 1000 ? `${count}` : count < 1e6 ? `${count / 1000}k` : `${count / 1e6}M`;
};

/** Adds the plot to `element`; returns a function that removes it. */
export function drawHistogram(element: HTMLElement, found: Distribution): () => void {
  const { low, high, original, quantized } = found;
  const width = (high - low) / original.length || 1;
  const middles = original.map((_, bin) => low + (bin + 0.5) * width);
  const axis = { stroke: colour(element, '--muted'), font: '12px system-ui, sans-serif' };
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: [low, high] },
        y: { range: (_plot, _min, max) => [0, max * 1.05] },
      },
      axes: [
        { ...axis, grid: { show: false }, ticks: { stroke: colour(element, '--line') } },
        {
          ...axis,
          size: 44,
          grid: { show: false },
          ticks: { stroke: colour(element, '--line') },
          splits: (_plot, _axis, _min, max) => marksTo(max),
          values: (_plot, marks) => marks.map(markText),
        },
      ],
      series: [
        {},
        {
          stroke: colour(element, '--line-strong'),
          fill: colour(element, '--plot-before'),
          paths: uPlot.paths.stepped?.({ align: 1 }),
          points: { show: false },
        },
        {
          stroke: colour(element, '--accent'),
          width: 1.5,
          paths: uPlot.paths.stepped?.({ align: 1 }),
          points: { show: false },
        },
      ],
      hooks: { drawClear: [gridOf(found, element)] },
    },
    [middles, heightsOf(original), heightsOf(quantized)],
    element,
  );
  const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
  resize.observe(element);
  return () => {
    resize.disconnect();
    plot.destroy();
  };
}
