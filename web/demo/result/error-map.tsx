// Where the error is: one row for each block of the model, width by bytes, colour by error. A click opens the tensor.
import { useSignal } from '@preact/signals';
import { bytesText } from '../../present/units';
import { percent } from '../../present/verdict';
import { canLookInto } from '../inspect/kept-model';
import { Values } from '../inspect/values';
import { type ErrorKind, errorsOf, type LayerError, limits } from '../report/errors';
import type { FinishedRun } from '../run/runs';

interface Block {
  title: string;
  layers: LayerError[];
}

/** Rows without numbered blocks, and blocks that are drawn. */
const [rowOf, mostBlocks] = [12, 64];

const othersTitle = (row: number) => (row === 0 ? 'others' : `others ${row + 1}`);

function blocksOf(errors: LayerError[]): Block[] {
  const blocks = new Map<string, LayerError[]>();
  let others = 0;
  for (const layer of errors) {
    const [, number] = /(?:^|[./_])(?:layers?|blocks?|blk|h)[./_](\d+)(?=[./_])/.exec(layer.tensor.name) ?? [];
    const title = number === undefined ? othersTitle(Math.floor(others++ / rowOf)) : `layer ${number}`;
    blocks.set(title, [...(blocks.get(title) ?? []), layer]);
  }
  const isNumbered = ({ title }: Block) => title.startsWith('layer');
  const list = [...blocks].map(([title, layers]) => ({ title, layers }));
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
  if (errors.list.length === 0) return null;
  const blocks = blocksOf(errors.list);
  const shown = errors.list.find(({ tensor }) => tensor.name === open.value);
  return (
    <section class="card" aria-labelledby="error-map">
      <h2 id="error-map" class="over">
        Where the error is <span>width: bytes, colour: {errors.title}</span>
      </h2>
      <div class={`map ${blocks.length > 12 ? 'map-dense' : ''}`}>
        {blocks.slice(0, mostBlocks).map(({ title, layers }) => (
          <div key={title} class="map-row">
            <span class="fine">{title}</span>
            {layers.map(({ tensor, error }) => (
              <button
                key={tensor.name}
                type="button"
                class="map-layer"
                aria-pressed={open.value === tensor.name}
                aria-label={`${tensor.name}: ${bytesText(tensor.bytesAfter)}, ${error === null ? 'error not known' : percent(error)}`}
                title={tensor.name}
                style={{ flexGrow: tensor.bytesAfter, '--share': `${Math.round(100 * shareOf(errors.title, error))}%` }}
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
