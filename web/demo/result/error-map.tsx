// Where the error is: one row for each block of the model, width by bytes, colour by error. A click opens the tensor.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { bytesText, plural } from '../../present/units';
import { percent } from '../../present/verdict';
import { canLookInto } from '../inspect/kept-model';
import { Values } from '../inspect/values';
import { errorsOf, limits } from '../report/errors';
import type { FinishedRun } from '../run/runs';
import { blocksOf, shareOf } from './error-blocks';

/** Blocks that are drawn. */
const mostBlocks = 64;

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
      <div
        class={`map ${blocks.length > 12 ? 'map-dense' : ''}`}
        style={{ '--rows': Math.min(blocks.length, mostBlocks) }}
      >
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
          : `Green: good, up to ${percent(limits[errors.title][0])}; red: bad, over ${percent(limits[errors.title][1])}. Click a layer to see its values and its error.`}
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
