/** How much of a model is quantized, and why the rest is not. */
import type { Coverage } from '../lib/node.js';
import { coverageText, percentText, shownLeft } from '../present/coverage.js';
import { bytesText, plural } from '../present/units.js';
import { type TableOptions, table } from './tables.js';

/** The shares, then the largest unquantized parts. */
export function coverageLines(coverage: Coverage, options: TableOptions): string[] {
  const { shown, more } = shownLeft(coverage.left);
  const dim = () => options.colors.dim;
  const rows = table(
    shown,
    [
      { title: 'left', align: 'right', cell: ({ bytes }) => bytesText(bytes) },
      { title: '', align: 'right', cell: ({ bytes }) => percentText(bytes, coverage.bytes), spare: 1 },
      { title: '', align: 'right', cell: ({ tensors }) => plural(tensors, 'tensor'), paint: dim, spare: 0 },
      { title: 'why', cell: ({ text }) => text, paint: dim, prose: true },
    ],
    { ...options, indent: 2 },
  );
  return [
    `quantized: ${coverageText(coverage)}`,
    ...(shown.length > 0 ? rows : []),
    ...(more === '' ? [] : [options.colors.dim(`  ${more}`)]),
  ];
}
