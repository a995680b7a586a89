// Where the result will run. Runtimes that this model cannot reach are folded into one line that says why.
import type { Model } from 'wasmquant';
import { choice } from '../configure/choice';
import { obstacleFor, wishRuntime } from '../configure/reach';
import { type Obstacle, type Runtime, runtimes } from '../configure/runtimes';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';

interface Place {
  runtime: Runtime;
  obstacle: Obstacle | null;
}

function Row({ runtime, obstacle, model }: Place & { model: Model }) {
  const { id, title } = runtime;
  const isChosen = choice.value.runtime === id;
  return (
    <label
      class={`where-row ${isChosen ? 'where-chosen' : ''} ${obstacle ? 'where-closed' : ''}`}
      title={obstacle?.help}
    >
      <input
        type="radio"
        name="where"
        class="over-all"
        value={id}
        checked={isChosen}
        disabled={obstacle !== null}
        onChange={() => wishRuntime(id, model)}
      />
      <span class="where-title">{title}</span>
      <span class="fine">{obstacle?.reason ?? runtime.note(model)}</span>
      {obstacle && <span class="where-help fine">{obstacle.help}</span>}
    </label>
  );
}

/** `5 others: needs safetensors`. */
function othersText(closed: readonly Place[]): string {
  const reasons = [...new Set(closed.map(({ obstacle }) => obstacle?.reason))];
  return `${closed.length} ${closed.length === 1 ? 'other' : 'others'}: ${reasons.join(', ')}`;
}

export function WherePanel() {
  const model = opened.value?.model;
  if (!model) return null;
  const places = runtimes.map((runtime) => ({ runtime, obstacle: obstacleFor(runtime, model) }));
  const closed = places.filter(({ obstacle }) => obstacle);
  const row = (place: Place) => <Row key={place.runtime.id} {...place} model={model} />;
  return (
    <fieldset class="where" disabled={isBusy.value}>
      <legend class="over">Where will it run?</legend>
      {places.filter(({ obstacle }) => !obstacle).map(row)}
      {closed.length > 0 && (
        <details class="where-others">
          <summary class="fine">{othersText(closed)}</summary>
          {closed.map(row)}
        </details>
      )}
    </fieldset>
  );
}
