// A text: typed, pasted, chosen, or dropped onto the field.
import { useSignal } from '@preact/signals';
import { readTextFile } from 'wasmquant';
import { countText } from '../../present/units';
import { explain } from '../app/failure';
import { useFieldDrop } from '../open/field-drop';
import { isBusy } from './job';
import { type TextUse, texts } from './texts';

interface Properties {
  use: TextUse;
  title: string;
  description: string;
}

export function TextField({ use, title, description }: Properties) {
  const text = texts[use];
  /** How the last file was read, or why not. */
  const remark = useSignal<string | null>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      const found = await readTextFile(new Uint8Array(await file.arrayBuffer()), file.name);
      text.value = [found.text].flat().join('\n\n');
      remark.value = found.remark;
    } catch (error) {
      const { where, message } = explain(error, '');
      remark.value = `${where ?? file.name} ${message}`;
    }
  };
  const { isOver, handlers } = useFieldDrop(([file]) => void take(file));
  return (
    <div class="field">
      <label for={`text-${use}`}>{title}</label>
      <textarea
        id={`text-${use}`}
        class={isOver ? 'drop-zone-over' : ''}
        rows={5}
        spellcheck={false}
        placeholder="Paste text, or drop a text file here"
        value={text.value}
        disabled={isBusy.value}
        aria-describedby={`text-${use}-note`}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          remark.value = null;
        }}
        {...handlers}
      />
      <div class="text-foot">
        <p class="fine" id={`text-${use}-note`}>
          {text.value === '' ? description : `${countText(text.value.length)} characters`}
          {remark.value !== null && <span role="status"> {remark.value}</span>}
        </p>
        <span class="file-button">
          <input
            id={`text-file-${use}`}
            type="file"
            accept=".txt,.md,.text,.jsonl,text/*"
            disabled={isBusy.value}
            aria-label={`${title}: choose a file`}
            onChange={(event) => {
              void take(event.currentTarget.files?.[0]);
              event.currentTarget.value = '';
            }}
          />
          <label for={`text-file-${use}`} class="button button-small" aria-hidden="true">
            Text file…
          </label>
        </span>
      </div>
    </div>
  );
}
