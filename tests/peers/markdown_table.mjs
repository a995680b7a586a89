// Tables of Markdown pages that commands write.

/** Text that means nothing else inside a cell. */
export const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');

/** Lines of a table; columns are padded as biome formats them. */
export function table(headers, rows) {
  const cells = [headers, ...rows].map((row) => row.map(cell));
  const widths = headers.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row, fill = ' ') => `| ${row.map((text, column) => text.padEnd(widths[column], fill)).join(' | ')} |`;
  const [first, ...others] = cells.map((row) => line(row));
  return [
    first,
    line(
      headers.map(() => ''),
      '-',
    ),
    ...others,
  ];
}
