/** Aligned columns of plain text. Makes cells printable, so that no caller can forget to. */
import type { Colors, Paint } from './terminal.js';
import { printable } from './terminal.js';

export interface Column<Row> {
  title: string;
  align?: 'left' | 'right';
  cell: (row: Row) => string;
  /** Colour of a padded cell. */
  paint?: (row: Row) => Paint;
  /** On a narrow terminal, columns with a number are dropped, the lowest number first. */
  spare?: number;
  /** Prose may be cut to fit. */
  prose?: true;
}

export interface TableOptions {
  colors: Colors;
  /** Width to fit into, if spare columns and prose allow. */
  columns: number;
  /** Spaces before each line. */
  indent?: number;
}

interface Measured<Row> extends Column<Row> {
  texts: string[];
  width: number;
}

const kGap = '  ';
/** Prose is never cut below this many characters; a narrower terminal wraps. */
const kLeastProse = 24;

/** Cuts to `width` characters, the last an ellipsis. */
export function cut(text: string, width: number): string {
  // No more than can be shown: metadata may have 100 MB.
  const characters = [...text.slice(0, 2 * (width + 1))];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

function pad(text: string, width: number, align: 'left' | 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - [...text].length));
  return align === 'right' ? space + text : text + space;
}

/** Drops spare columns, then narrows prose, until a line has at most `room` characters or nothing is left to cut. */
function fit<Row>(columns: Measured<Row>[], room: number): Measured<Row>[] {
  const excess = columns.reduce((sum, column) => sum + column.width + kGap.length, -kGap.length) - room;
  if (excess <= 0) return columns;
  const prose = columns.find((column) => column.prose && column.width > kLeastProse);
  if (prose && prose.width - excess >= kLeastProse) {
    return columns.map((column) => (column === prose ? { ...column, width: column.width - excess } : column));
  }
  const spares = columns.filter((column) => column.spare !== undefined).sort((a, b) => (a.spare ?? 0) - (b.spare ?? 0));
  if (spares.length > 0) {
    return fit(
      columns.filter((column) => column !== spares[0]),
      room,
    );
  }
  return columns.map((column) => (column === prose ? { ...column, width: kLeastProse } : column));
}

/** Lines of a table with a dimmed title line. Empty columns are omitted. */
export function table<Row>(rows: Row[], columns: Column<Row>[], options: TableOptions): string[] {
  const indent = ' '.repeat(options.indent ?? 0);
  const filled = columns
    .map((column) => ({ ...column, texts: rows.map((row) => printable(column.cell(row))) }))
    .filter((column) => column.texts.some((text) => text !== ''))
    .map((column) => ({
      ...column,
      width: column.texts.reduce((width, text) => Math.max(width, [...text].length), column.title.length),
    }));
  const shown = fit(filled, options.columns - indent.length);

  const line = (cells: string[]) => (indent + cells.join(kGap)).trimEnd();
  const titles = shown.map((column) => options.colors.dim(pad(column.title, column.width, column.align)));
  const body = rows.map((row, index) =>
    line(
      shown.map((column, position) => {
        const text = cut(column.texts[index] ?? '', column.width);
        const last = position + 1 === shown.length && column.align !== 'right';
        const cell = last ? text : pad(text, column.width, column.align);
        return column.paint ? column.paint(row)(cell) : cell;
      }),
    ),
  );
  return [line(titles), ...body];
}
