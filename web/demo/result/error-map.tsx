// Where the error is: one row for each block of the model, width by bytes, colour by error. A click opens the tensor.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { collapse } from '../../present/collapse';
import { bytesText, plural } from '../../present/units';
import { percent } from '../../present/verdict';
import { canLookInto } from '../inspect/kept-model';
import { Values } from '../inspect/values';
import { type ErrorKind, errorsOf, type LayerError, limits } from '../report/errors';
import type { FinishedRun } from '../run/runs';

/** A layer, or layers of one block whose names differ in numbers: hundreds of experts are one cell, of the worst of them. */
interface Cell {
  name: string;
  worst: LayerError;
  count: number;
  bytes: number;
}

interface Block {
  title: string;
  cells: Cell[];
}

/** Rows without numbered blocks, blocks that are drawn, and layers of a block that have a cell each. */
const [rowOf, mostBlocks, mostCells] = [12, 64, 24];

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

function blocksOf(errors: LayerError[]): Block[] {
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
  return [...list.filter(isNumbered), ...list.filter((block) => !isNumbered(block))];
}

/** The least that colours tell apart, by the limit of what is good. */
const leastShare = 1 / 10;

/** From 0 to 1, where an error is bad, on a logarithmic scale: the colours say what the words say. */
function shareOf(kind: ErrorKind, error: number | null): number {
  if (!error) return 0;
  const [good, visible] = limits[kind];
  const low = Math.log(good * leastShare);
  return Math.min(1, Math.max(0, (Math.log(error) - low) / (Math.log(visible) - low)));
}

export function ErrorMap({ done }: { done: FinishedRun }) {
  const open = useSignal<string | null>(null);
  const errors = errorsOf(done.report);
  const blocks = useMemo(() => blocksOf(errors.list), [errors]);
  if (errors.list.length === 0) return null;
  const shown = errors.list.find(({ tensor }) => tensor.name === open.value);
  return (
    <section class="card" aria-labelledby="error-map">
      <h2 id="error-map" class="over">
        Where the error is <span>width: bytes, colour: {errors.title}</span>
      </h2>
      <div class={`map ${blocks.length > 12 ? 'map-dense' : ''}`}>
        {blocks.slice(0, mostBlocks).map(({ title, cells }) => (
          <div key={title} class="map-row">
            <span class="fine">{title}</span>
            {cells.map(({ name, worst: { tensor, error }, count, bytes }) => (
              <button
                key={tensor.name}
                type="button"
                class="map-layer"
                aria-pressed={open.value === tensor.name}
                aria-label={`${name}${count > 1 ? `, ${plural(count, 'layer')}` : ''}: ${bytesText(bytes)}, ${error === null ? 'error not known' : `${count > 1 ? 'at most ' : ''}${percent(error)}`}`}
                title={name}
                style={{ flexGrow: bytes, '--share': `${Math.round(100 * shareOf(errors.title, error))}%` }}
                onClick={() => {
                  open.value = open.value === tensor.name ? null : tensor.name;
                }}
              />
            ))}
          </div>
        ))}
      </div>
      <p class="fine">
        {blocks.length > mostBlocks && `The first ${mostBlocks} blocks. `}
        {shown
          ? ''
          : `Green: next to no error, red: bad, over ${percent(limits[errors.title][1])}. Click a layer to see its values and its error.`}
      </p>
      {shown && (
        <div class="map-detail">
          <p>
            <code>{shown.tensor.name}</code>{' '}
            <span class="fine">
              {errors.title} {shown.error === null ? 'not known' : percent(shown.error)},{' '}
              {bytesText(shown.tensor.bytesAfter)}
            </span>
          </p>
          {canLookInto(done) && <Values key={shown.tensor.name} run={done} tensor={shown.tensor.name} />}
        </div>
      )}
    </section>
  );
}
