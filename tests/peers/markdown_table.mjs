// Tables and lists of Markdown pages that commands write.

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

const lineWidth = 158;

/** Text in lines of at most lineWidth; `first` begins the first one, the others are indented as far. */
export function wrapped(text, first = '') {
  const lines = [first];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    const isEmpty = line.trim() === first.trim() && (lines.length === 1 || line.trim() === '');
    if (line.length + 1 + word.length > lineWidth && !isEmpty) lines.push(' '.repeat(first.length) + word);
    else lines[lines.length - 1] += (isEmpty ? '' : ' ') + word;
  }
  return lines;
}

/** A line of a list, wrapped. */
export const item = (text) => wrapped(text, '- ');
