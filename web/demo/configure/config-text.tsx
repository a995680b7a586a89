// The config as JSON, to read or to edit. An edit takes effect when typing pauses.
import { useRef } from 'preact/hooks';
import { quantizer } from '../app/engine';
import { run } from '../run/runs';
import { choice, chosenPreset } from './choice';

const pauseMs = 400;

export function ConfigText() {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { configText } = choice.value;
  const text = configText ?? JSON.stringify(chosenPreset.value?.config ?? {}, null, 2);
  const edit = (value: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      choice.value = { ...choice.value, configText: value };
    }, pauseMs);
  };
  const reset = () => {
    clearTimeout(timer.current);
    choice.value = { ...choice.value, configText: null };
  };
  return (
    <details class="config-text">
      <summary>Config</summary>
      <textarea
        aria-label="Config as JSON"
        rows={12}
        spellcheck={false}
        value={text}
        disabled={!quantizer.value || run.value.state === 'running'}
        onInput={(event) => edit(event.currentTarget.value)}
      />
      {configText !== null && (
        <button type="button" class="button button-small" onClick={reset}>
          Back to the preset
        </button>
      )}
    </details>
  );
}
