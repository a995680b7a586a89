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
/** Likewise for other text, which is cut in the middle. */
const kLeastName = 10;

/** Cuts to `width` characters, the last an ellipsis. */
export function cut(text: string, width: number): string {
  // No more than can be shown: metadata may have 100 MB.
  const characters = [...text.slice(0, 2 * (width + 1))];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

/** Cuts names in the middle: what tells them apart is at both ends. */
function cutName(text: string, width: number): string {
  const characters = [...text];
  if (characters.length <= width) return text;
  const front = Math.ceil((width - 1) / 2);
  return `${characters.slice(0, front).join('')}…${characters.slice(characters.length - (width - 1 - front)).join('')}`;
}

function pad(text: string, width: number, align: 'left' | 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - [...text].length));
  return align === 'right' ? space + text : text + space;
}

const widthOf = <Row>(columns: Measured<Row>[]) =>
  columns.reduce((sum, column) => sum + column.width + kGap.length, -kGap.length);

/** Narrows the widest of some columns until a line has at most `room` characters, or all have `least`. */
function narrowed<Row>(
  columns: Measured<Row>[],
  room: number,
  least: number,
  isNarrowed: (column: Measured<Row>) => boolean,
): Measured<Row>[] {
  for (let narrower = columns; ; ) {
    const excess = widthOf(narrower) - room;
    const [widest, next] = narrower.filter(isNarrowed).sort((a, b) => b.width - a.width);
    if (excess <= 0 || !widest || widest.width <= least) return narrower;
    const width = Math.max(least, widest.width - excess, (next?.width ?? 0) - 1);
    narrower = narrower.map((column) => (column === widest ? { ...column, width } : column));
  }
}

/** Narrows prose, then drops spare columns, then cuts names in the middle, until a line has at most `room` characters. */
function fit<Row>(columns: Measured<Row>[], room: number): Measured<Row>[] {
  const narrow = narrowed(columns, room, kLeastProse, ({ prose }) => prose === true);
  if (widthOf(narrow) <= room) return narrow;
  const [spare] = columns
    .filter((column) => column.spare !== undefined)
    .sort((a, b) => (a.spare ?? 0) - (b.spare ?? 0));
  if (spare)
    return fit(
      columns.filter((column) => column !== spare),
      room,
    );
  return narrowed(narrow, room, kLeastName, ({ align }) => align !== 'right');
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
        const whole = column.texts[index] ?? '';
        const text = column.prose ? cut(whole, column.width) : cutName(whole, column.width);
        const last = position + 1 === shown.length && column.align !== 'right';
        const cell = last ? text : pad(text, column.width, column.align);
        return column.paint ? column.paint(row)(cell) : cell;
      }),
    ),
  );
  return [line(titles), ...body];
}
