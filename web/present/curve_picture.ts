// The curve as an SVG picture: size from left to right, loss from bottom to top, the frontier a line, estimates hollow.
import type { Curve, CurvePoint } from 'wasmquant';
import { lossTickText, multiples, sizeTickText, stepFor } from './axis.js';
import { bytesText } from './units.js';

const width = 720;
const height = 420;
const edge = { left: 72, right: 24, top: 40, bottom: 56 };

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

interface Placed {
  point: CurvePoint;
  x: number;
  y: number;
}

/** Text of a loss with as many digits as tell ticks apart. */
export function lossText(loss: number, kind: Curve['metric']['kind']): string {
  if (!Number.isFinite(loss)) return '∞';
  if (kind === 'bits-per-byte') return loss.toFixed(4);
  return kind === 'kld' ? loss.toPrecision(3) : `${(100 * loss).toPrecision(3)} %`;
}

/** Room above and below what is shown. */
function rangeOf(values: readonly number[], share: number): [number, number] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = share * (most - least || Math.abs(most) || 1);
  return [Math.max(0, least - room), most + room];
}

/** Colours are of the text around the picture, so that it fits light and dark pages. */
const style =
  'text{font:12px system-ui,sans-serif;fill:currentColor}.axis{stroke:currentColor;stroke-opacity:.2}' +
  '.frontier{fill:none;stroke:#2563eb;stroke-width:2}.point{stroke:#2563eb;stroke-width:2;fill:#2563eb}' +
  '.beaten{stroke:#6b7280;fill:#6b7280}.estimate{fill:none;stroke-dasharray:3 2}.original{stroke:currentColor;stroke-dasharray:4 4;stroke-opacity:.5}';

/** `title`: such as the model's name. Points without a loss are left out. */
export function curvePicture({ metric, original, points }: Curve, title: string): string {
  const shown = points.filter((point) => point.loss !== null && Number.isFinite(point.loss));
  const losses = [...shown.map(({ loss }) => loss as number), ...(original.loss === null ? [] : [original.loss])];
  const [left, right] = rangeOf(shown.length > 0 ? shown.map(({ bytes }) => bytes) : [original.bytes], 0.1);
  const [low, high] = rangeOf(losses.length > 0 ? losses : [1], 0.08);
  const atX = (bytes: number) => edge.left + ((bytes - left) / (right - left)) * (width - edge.left - edge.right);
  const atY = (loss: number) =>
    height - edge.bottom - ((loss - low) / (high - low)) * (height - edge.top - edge.bottom);
  const number = (value: number) => value.toFixed(1);
  const placed: Placed[] = shown.map((point) => ({ point, x: atX(point.bytes), y: atY(point.loss as number) }));
  const frontier = placed.filter(({ point }) => point.onFrontier).sort((a, b) => a.x - b.x);
  const step = stepFor(high - low, 5);
  const vertical = multiples(low, high, step).map((loss) => {
    const y = number(atY(loss));
    return `<line class="axis" x1="${edge.left}" x2="${width - edge.right}" y1="${y}" y2="${y}"/><text x="${edge.left - 8}" y="${y}" text-anchor="end" dominant-baseline="middle">${lossTickText(metric.kind, loss, step)}</text>`;
  });
  const horizontal = multiples(left, right, stepFor(right - left, 6)).map(
    (bytes) =>
      `<text x="${number(atX(bytes))}" y="${height - edge.bottom + 20}" text-anchor="middle">${sizeTickText(bytes)}</text>`,
  );
  const base =
    original.loss === null
      ? ''
      : `<line class="original" x1="${edge.left}" x2="${width - edge.right}" y1="${number(atY(original.loss))}" y2="${number(atY(original.loss))}"/><text x="${width - edge.right}" y="${number(atY(original.loss) - 6)}" text-anchor="end">original, ${bytesText(original.bytes)}</text>`;
  const line = frontier.map(({ x, y }) => `${number(x)},${number(y)}`).join(' ');
  const marks = placed.map(({ point, x, y }) => {
    const kinds = ['point', point.onFrontier ? '' : 'beaten', point.measured ? '' : 'estimate'].filter(Boolean);
    const about = `${point.scheme}: ${bytesText(point.bytes)}, ${point.measured ? '' : 'estimated '}${lossText(point.loss as number, metric.kind)}`;
    const anchor = x > width - 140 ? 'end' : 'start';
    return `<circle class="${kinds.join(' ')}" cx="${number(x)}" cy="${number(y)}" r="5"><title>${escaped(about)}</title></circle><text x="${number(anchor === 'end' ? x - 9 : x + 9)}" y="${number(y - 7)}" text-anchor="${anchor}">${escaped(point.scheme)}</text>`;
  });
  const measured =
    metric.windows === undefined ? '' : `, ${metric.windows} ${metric.kind === 'output-error' ? 'feeds' : 'windows'}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(`${title}: size of the file against ${metric.name}`)}">`,
    `<style>${style}</style>`,
    `<text x="${edge.left}" y="20" font-weight="600">${escaped(title)}</text>`,
    ...vertical,
    ...horizontal,
    base,
    line && `<polyline class="frontier" points="${line}"/>`,
    ...marks,
    `<text x="${width - edge.right}" y="${height - 12}" text-anchor="end">size of the file</text>`,
    `<text x="${edge.left}" y="${height - 12}">${escaped(metric.name + measured)}: less is better</text>`,
    '</svg>',
    '',
  ]
    .filter((part) => part !== '')
    .join('\n');
}
