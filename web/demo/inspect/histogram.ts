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
        before: { range: (_plot, _min, max) => [0, max * 1.05] },
        // A few grid values have as many counts as hundreds of bins: a separate scale makes both visible.
        after: { range: (_plot, _min, max) => [0, max * 1.05] },
      },
      axes: [{ ...axis, grid: { show: false }, ticks: { stroke: colour(element, '--line') } }, { show: false }],
      series: [
        {},
        {
          scale: 'before',
          stroke: colour(element, '--line-strong'),
          fill: colour(element, '--plot-before'),
          paths: uPlot.paths.stepped?.({ align: 1 }),
          points: { show: false },
        },
        {
          scale: 'after',
          stroke: colour(element, '--accent'),
          width: 1.5,
          paths: uPlot.paths.stepped?.({ align: 1 }),
          points: { show: false },
        },
      ],
      hooks: { drawClear: [gridOf(found, element)] },
    },
    [middles, original, quantized],
    element,
  );
  const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
  resize.observe(element);
  return () => {
    resize.disconnect();
    plot.destroy();
  };
}
