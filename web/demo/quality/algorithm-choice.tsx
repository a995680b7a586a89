import { algorithms, hasAlgorithm, withAlgorithm } from '../configure/algorithms';
import { choice, chosenConfig, useConfig } from '../configure/choice';
import { holdsAlgorithms } from '../configure/formats';
import { isBusy } from './job';

export function AlgorithmChoice() {
  const config = chosenConfig.value;
  const fits = config !== null && 'global_quant_config' in config && holdsAlgorithms(choice.value.format);
  return (
    <fieldset class="algorithms" disabled={isBusy.value || !fits}>
      <legend>Algorithms of the run</legend>
      {algorithms.map((algorithm) => (
        <label key={algorithm.name}>
          <input
            type="checkbox"
            checked={config !== null && hasAlgorithm(config, algorithm)}
            onChange={(event) => {
              if (config) useConfig(withAlgorithm(config, algorithm, event.currentTarget.checked));
            }}
          />{' '}
          {algorithm.title} <span class="fine">{algorithm.description}</span>
        </label>
      ))}
      {!fits && <p class="fine">They go with configs in Quark's words and with formats other than GGUF and ONNX.</p>}
    </fieldset>
  );
}
