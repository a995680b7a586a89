// A text: typed, pasted, chosen, or dropped onto the field.
import { countText } from '../../present/units';
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
  const take = async (file: File | undefined) => {
    if (file) text.value = await file.text();
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
        }}
        {...handlers}
      />
      <div class="text-foot">
        <p class="fine" id={`text-${use}-note`}>
          {text.value === '' ? description : `${countText(text.value.length)} characters`}
        </p>
        <span class="file-button">
          <input
            id={`text-file-${use}`}
            type="file"
            accept=".txt,.md,.text,text/*"
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
