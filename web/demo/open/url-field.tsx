// Opens a model by URL: range requests fetch only the needed parts. The page makes no other network requests.
import { useSignal } from '@preact/signals';
import { quantizer } from '../app/engine';
import { isBusy } from '../quality/job';
import { openUrl } from './open-model';
import { opening } from './opened';

export function UrlField() {
  const url = useSignal('');
  const busy = !quantizer.value || opening.value !== null || isBusy.value;
  return (
    <form
      class="url-field"
      onSubmit={(event) => {
        event.preventDefault();
        if (url.value.trim() !== '') void openUrl(url.value.trim());
      }}
    >
      <input
        type="text"
        inputMode="url"
        aria-label="Address of a model"
        placeholder="or org/model of Hugging Face, or a URL"
        value={url.value}
        disabled={busy}
        onInput={(event) => {
          url.value = event.currentTarget.value;
        }}
      />
      <button type="submit" class="button button-small" disabled={busy}>
        Open
      </button>
    </form>
  );
}
