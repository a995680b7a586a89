// Diagnostics. Equal messages at several places are one entry with a list of places.
import type { Diagnostic } from 'wasmquant';
import { sentenceOf } from '../../present/sentence';
import { countText, plural } from '../../present/units';
import { textOf } from './code-text';

/** Number shown before the rest is folded. */
const shownAtOnce = 3;

/** Places listed: a large model has thousands, which take long to draw. */
const mostPlaces = 100;

interface DiagnosticGroup {
  diagnostic: Diagnostic;
  places: string[];
}

function gathered(items: Diagnostic[]): DiagnosticGroup[] {
  const entries = new Map<string, DiagnosticGroup>();
  for (const diagnostic of items) {
    const { severity, message, hint, where } = diagnostic;
    const key = JSON.stringify([severity, message, hint]);
    const entry = entries.get(key) ?? { diagnostic, places: [] };
    if (where) entry.places.push(where);
    entries.set(key, entry);
  }
  return [...entries.values()];
}

function Places({ places }: { places: string[] }) {
  const list = places.slice(0, mostPlaces).map((place) => (
    <code key={place} class="diagnostic-place">
      {place}
    </code>
  ));
  if (places.length < 2) return list;
  return (
    <details>
      <summary>{countText(places.length)} places</summary>
      {list}
      {places.length > mostPlaces && <span class="fine">and {countText(places.length - mostPlaces)} more</span>}
    </details>
  );
}

/** The code, and on hover what it means and what to do. */
function Code({ code }: { code: string }) {
  const text = textOf(code);
  return (
    <code class="diagnostic-code" title={text && `${text.meaning} ${text.advice}`}>
      {code}
    </code>
  );
}

function Items({ entries }: { entries: DiagnosticGroup[] }) {
  return (
    <ul>
      {entries.map(({ diagnostic: { severity, code, message, hint }, places }) => (
        <li key={`${severity} ${message}`} class={`diagnostic diagnostic-${severity}`}>
          <span class="diagnostic-severity">{severity}</span>
          <div>
            <p>
              {sentenceOf(places[0], message)} <Code code={code} />
            </p>
            {hint && <p class="diagnostic-hint">{hint.includes('\n') ? hint : sentenceOf(null, hint)}</p>}
            <Places places={places} />
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Everything there is to know, folded into a line; with `isOpen` only notes are. */
export function Remarks({ items, isOpen = false }: { items: Diagnostic[]; isOpen?: boolean }) {
  if (items.length === 0) return null;
  const entries = gathered(items);
  const count = (wanted: string) => entries.filter(({ diagnostic }) => diagnostic.severity === wanted).length;
  const texts = ['error', 'warning', 'note'].flatMap((name) => (count(name) > 0 ? [plural(count(name), name)] : []));
  return (
    <details class="remarks" open={isOpen && items.some(({ severity }) => severity !== 'note')}>
      <summary>{texts.join(' and ')}</summary>
      <Entries entries={entries} />
    </details>
  );
}

export function Diagnostics({ items }: { items: Diagnostic[] }) {
  return <Entries entries={gathered(items)} />;
}

function Entries({ entries }: { entries: DiagnosticGroup[] }) {
  if (entries.length === 0) return null;
  const rest = entries.slice(shownAtOnce);
  return (
    <div class="diagnostics">
      <Items entries={entries.slice(0, shownAtOnce)} />
      {rest.length > 0 && (
        <details class="diagnostics-rest">
          <summary>{rest.length} more</summary>
          <Items entries={rest} />
        </details>
      )}
    </div>
  );
}
