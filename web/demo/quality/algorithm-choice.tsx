import { algorithms, hasAlgorithm, withAlgorithm } from '../configure/algorithms';
import { choice, chosenConfig, useConfig } from '../configure/choice';
import { isBusy } from './job';

/** Formats that can store the results of calibrated algorithms. */
const holds = (format: string) => format !== 'gguf' && format !== 'onnx';

export function AlgorithmChoice() {
  const config = chosenConfig.value;
  const fits = config !== null && 'global_quant_config' in config && holds(choice.value.format);
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
