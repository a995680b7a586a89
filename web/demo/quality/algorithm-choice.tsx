import { algorithms, hasAlgorithm, withAlgorithm } from '../configure/algorithms';
import { choice, chosenConfig, useConfig } from '../configure/choice';
import { holdsAlgorithms } from '../configure/formats';
import { isBusy } from './job';

export function AlgorithmChoice() {
  const config = chosenConfig.value;
  if (config === null || !holdsAlgorithms(config, choice.value.format)) return null;
  return (
    <fieldset class="algorithms" disabled={isBusy.value}>
      <legend>Algorithms of the run</legend>
      {algorithms.map((algorithm) => (
        <label key={algorithm.name}>
          <input
            type="checkbox"
            checked={hasAlgorithm(config, algorithm)}
            onChange={(event) => {
              useConfig(withAlgorithm(config, algorithm, event.currentTarget.checked));
            }}
          />{' '}
          {algorithm.title} <span class="fine">{algorithm.description}</span>
        </label>
      ))}
    </fieldset>
  );
}
