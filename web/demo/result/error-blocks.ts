// What the map of errors draws: blocks of the model in their order, their layers, and how much of the colour of what is bad each has.
import { collapse } from '../../present/collapse';
import { type ErrorKind, type LayerError, limits } from '../report/errors';

/** A layer, or layers of one block whose names differ in numbers: hundreds of experts are one cell, of the worst of them. */
interface Cell {
  name: string;
  worst: LayerError;
  count: number;
  bytes: number;
}

export interface Block {
  title: string;
  cells: Cell[];
}

/** Rows without numbered blocks, and layers of a block that have a cell each. */
const [rowOf, mostCells] = [12, 24];

const othersTitle = (row: number) => (row === 0 ? 'others' : `others ${row + 1}`);

const isWorse = (a: LayerError, b: LayerError) => (a.error ?? 0) > (b.error ?? 0);

function cellsOf(layers: LayerError[]): Cell[] {
  const rows = layers.map((layer) => ({ ...layer, name: layer.tensor.name }));
  const alike = layers.length > mostCells ? () => '' : ({ name }: { name: string }) => name;
  return collapse(rows, alike).map(({ name, rows: merged }) => ({
    name,
    worst: merged.reduce((worst, layer) => (isWorse(layer, worst) ? layer : worst)),
    count: merged.length,
    bytes: merged.reduce((sum, { tensor }) => sum + tensor.bytesAfter, 0),
  }));
}

export function blocksOf(errors: LayerError[]): Block[] {
  const blocks = new Map<string, LayerError[]>();
  let others = 0;
  for (const layer of errors) {
    const [, number] = /(?:^|[./_])(?:layers?|blocks?|blk|h)[./_](\d+)(?=[./_])/.exec(layer.tensor.name) ?? [];
    const title = number === undefined ? othersTitle(Math.floor(others++ / rowOf)) : `layer ${number}`;
    const known = blocks.get(title);
    if (known) known.push(layer);
    else blocks.set(title, [layer]);
  }
  const isNumbered = ({ title }: Block) => title.startsWith('layer');
  const list = [...blocks].map(([title, layers]) => ({ title, cells: cellsOf(layers) }));
  const inOrder = list.filter(isNumbered).sort((a, b) => a.title.localeCompare(b.title, 'en', { numeric: true }));
  return [...inOrder, ...list.filter((block) => !isNumbered(block))];
}

/** The least that colours tell apart, by the limit of what is good. */
const leastShare = 1 / 10;

/** How much of the colour of what is bad an error has where it stops to be good. */
const shareOfGood = 1 / 5;

const shareBetween = (low: number, high: number, value: number) =>
  Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));

/** From 0 to 1, where an error is bad: green while the word is good, browner the more it is visible. */
export function shareOf(kind: ErrorKind, error: number | null): number {
  if (!error) return 0;
  const [good, visible] = limits[kind];
  return error <= good
    ? shareOfGood * shareBetween(good * leastShare, good, error)
    : shareOfGood + (1 - shareOfGood) * shareBetween(good, visible, error);
}
