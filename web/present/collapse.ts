/**
 * Merges rows that differ only in the numbers in their names: `model.layers.{0..31}.mlp.up_proj.weight`.
 * Only whole segments between dots or slashes count as numbers, and only complete products merge (every layer with every
 * expert), so that the short name never claims a missing tensor.
 */

export interface Group<Row> {
  /** The common name, numbers as brace ranges. */
  name: string;
  rows: Row[];
}

interface Numbered<Row> {
  row: Row;
  /** Text around the numbers: one more than there are numbers. */
  pieces: string[];
  numbers: string[];
}

/** Splits a name: pieces and numbers in turn. */
const kNumberSegment = /(?<=^|[./])(\d+)(?=[./]|$)/;

/** `0..31`, `0..30..2` (step 2), or runs: `0,3..5`. */
function rangeText(numbers: string[]): string {
  const values = numbers.map(Number);
  const step = (values[1] ?? 0) - (values[0] ?? 0);
  if (values.length > 2 && values.every((value, index) => index === 0 || value - (values[index - 1] ?? 0) === step)) {
    return `${numbers[0]}..${numbers.at(-1)}${step === 1 ? '' : `..${step}`}`;
  }
  const runs: string[][] = [];
  numbers.forEach((number, index) => {
    const run = runs.at(-1);
    if (run && (values[index] ?? 0) === (values[index - 1] ?? 0) + 1) run.push(number);
    else runs.push([number]);
  });
  return runs.map((run) => (run.length > 2 ? `${run[0]}..${run.at(-1)}` : run.join(','))).join(',');
}

function groupBy<Item>(items: Item[], key: (item: Item) => string): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const of = key(item);
    const group = groups.get(of);
    if (group) group.push(item);
    else groups.set(of, [item]);
  }
  return [...groups.values()];
}

/** `items` have the same pieces. If they are not a complete product, fixes the first number that varies and retries the rest. */
function merge<Row>(items: Numbered<Row>[]): Group<Row>[] {
  const first = items[0];
  if (!first) return [];
  const axes = first.numbers.map((_, axis) =>
    [...new Set(items.map((item) => item.numbers[axis] ?? ''))].sort((a, b) => Number(a) - Number(b)),
  );
  const product = axes.reduce((count, numbers) => count * numbers.length, 1);
  const varying = axes.findIndex((numbers) => numbers.length > 1);
  if (product === items.length || varying < 0) {
    const ranges = axes.map((numbers) => (numbers.length > 1 ? `{${rangeText(numbers)}}` : (numbers[0] ?? '')));
    const name = first.pieces.map((piece, index) => piece + (ranges[index] ?? '')).join('');
    return [{ name, rows: items.map((item) => item.row) }];
  }
  return groupBy(items, (item) => item.numbers[varying] ?? '').flatMap(merge);
}

/** Groups in the order of their first row. `alike` gives equal text for rows that may share a line. */
export function collapse<Row extends { name: string }>(rows: Row[], alike: (row: Row) => string): Group<Row>[] {
  const items = rows.map((row) => {
    const parts = row.name.split(kNumberSegment);
    return { row, pieces: parts.filter((_, i) => i % 2 === 0), numbers: parts.filter((_, i) => i % 2 === 1) };
  });
  return groupBy(items, ({ pieces, row }) => `${pieces.join('\0')}\n${alike(row)}`).flatMap(merge);
}

/** Every row on its own line. */
export function single<Row extends { name: string }>(rows: Row[]): Group<Row>[] {
  return rows.map((row) => ({ name: row.name, rows: [row] }));
}
