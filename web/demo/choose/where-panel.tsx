// Where the result will run. Runtimes that this model cannot reach are grey and say why.

import { choice } from '../configure/choice';
import { obstacleFor, wishRuntime } from '../configure/reach';
import { runtimes } from '../configure/runtimes';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';

export function WherePanel() {
  const model = opened.value?.model;
  if (!model) return null;
  return (
    <fieldset class="where" disabled={isBusy.value}>
      <legend class="over">Where will it run?</legend>
      {runtimes.map((runtime) => {
        const { id, title } = runtime;
        const obstacle = obstacleFor(runtime, model);
        const isChosen = choice.value.runtime === id;
        return (
          <label
            key={id}
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
      })}
    </fieldset>
  );
}
