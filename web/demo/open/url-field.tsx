// Opens a model by URL: range requests fetch only the needed parts. The page makes no other network requests.
import { useSignal } from '@preact/signals';
import { asksForSample, link } from './deep-link';
import { cannotOpen } from './file-input';
import { asksForToken, hubToken } from './hub-token';
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
      {asksForToken.value && (
        <p class="url-token">
          <label for="hub-token" class="url-token-title">
            Hugging Face token
          </label>
          <input
            id="hub-token"
            type="password"
            autocomplete="off"
            aria-describedby="hub-token-note"
            value={hubToken.value}
            disabled={busy}
            onInput={(event) => {
              hubToken.value = event.currentTarget.value;
            }}
          />
          <span id="hub-token-note" class="fine">
            It goes only to the hub and is forgotten when this tab closes. One that may only read is enough.
          </span>
        </p>
      )}
      {linked !== '' && url.value === linked && (
        <p class="fine url-asked">The link that you followed names this model. It is fetched when you open it.</p>
      )}
    </form>
  );
}
