// Converts the config to the dialect of another tool and lists the losses.
import { signal } from '@preact/signals';
import type { Diagnostic, Dialect } from 'wasmquant';
import { isRecipe } from '../../present/config_edits';
import { Diagnostics } from '../app/diagnostics';
import { quantizer } from '../app/engine';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { choice, chosenConfig, dialectOf, useConfig } from './choice';

const dialects: { name: Dialect; title: string }[] = [
  { name: 'quark', title: 'AMD Quark' },
  { name: 'brevitas', title: 'Brevitas' },
  { name: 'aihwkit', title: 'IBM aihwkit' },
  { name: 'compressed-tensors', title: 'compressed-tensors' },
  { name: 'gptq', title: 'GPTQ' },
  { name: 'awq', title: 'AWQ' },
];

/** The last conversion and its text; another text makes it obsolete. */
const outcome = signal<{ text: string | null; title: string; losses: Diagnostic[]; failure: Failure | null } | null>(
  null,
);

function convert(config: object, to: Dialect): void {
  const title = dialects.find(({ name }) => name === to)?.title ?? to;
  try {
    const converted = quantizer.value!.convertConfig(config, to);
    useConfig(converted.config);
    outcome.value = { text: choice.value.configText, title, losses: converted.losses, failure: null };
  } catch (error) {
    const failure = explain(error, `The config cannot be converted to ${title}`);
    outcome.value = { text: choice.value.configText, title, losses: [], failure };
  }
}

export function Convert({ disabled }: { disabled: boolean }) {
  const config = chosenConfig.value;
  if (config && isRecipe(config)) return null;
  const dialect = config ? dialectOf(config) : '';
  const done = outcome.value?.text === choice.value.configText ? outcome.value : null;
  return (
    <div class="convert">
      <label class="fine" for="dialect">
        Written for
      </label>
      <select
        id="dialect"
        value={dialect}
        disabled={disabled || dialect === ''}
        onChange={(event) => {
          if (config) convert(config, event.currentTarget.value as Dialect);
        }}
      >
        {!dialects.some(({ name }) => name === dialect) && <option value={dialect}>{dialect}</option>}
        {dialects.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      {done?.failure && <FailureMessage failure={done.failure} />}
      {done && !done.failure && (
        <div role="status">
          <p class="fine">
            {done.losses.length === 0
              ? `Converted to ${done.title} without loss.`
              : `Lost or changed in ${done.title}:`}
          </p>
          <Diagnostics items={done.losses} />
        </div>
      )}
    </div>
  );
}
