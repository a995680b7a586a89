// Opens a model by URL: range requests fetch only the needed parts. The page makes no other network requests.
import { useSignal } from '@preact/signals';
import { asksForSample, link } from './deep-link';
import { cannotOpen } from './file-input';
import { openUrl } from './open-model';

export function UrlField() {
  const asked = link.value;
  const linked = asked && !asksForSample(asked) ? (asked.model ?? '') : '';
  const url = useSignal(linked);
  const busy = cannotOpen();
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
        placeholder="or paste an address, or a Hugging Face id: org/model"
        value={url.value}
        disabled={busy}
        onInput={(event) => {
          url.value = event.currentTarget.value;
        }}
      />
      {url.value.trim() !== '' && (
        <button type="submit" class="button" disabled={busy}>
          Open
        </button>
      )}
      {linked !== '' && url.value === linked && (
        <p class="fine url-asked">The link that you followed names this model. It is fetched when you open it.</p>
      )}
    </form>
  );
}
