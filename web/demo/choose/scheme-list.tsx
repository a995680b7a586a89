// All schemes, the usual ones of the runtime first, searched: what each is good for, its size, its loss where that is known, and where it runs.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Preset } from 'wasmquant';
import { usualPresets } from '../../present/runtimes/table';
import { bytesText } from '../../present/units';
import { choice, presets } from '../configure/choice';
import { chooseScheme, lookAtAll, runtimesFor } from '../configure/reach';
import { shortName } from '../configure/scheme-names';
import { sizeOf } from '../configure/sizes';
import { noteOf } from '../curve/cards';
import { pointId, points } from '../curve/state';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { LossPill } from './cards-view';

function Row({ preset }: { preset: Preset }) {
  const model = opened.value?.model;
  const [place] = model ? runtimesFor(preset.name, model) : [];
  const { name, title } = preset;
  const totals = place && sizeOf(name, place.format)?.totals;
  const id = place && pointId({ preset: name, format: place.format, configText: null });
  const point = points.value.find((each) => each.id === id);
  const note = point && noteOf(point);
  const { preset: chosen, configText } = choice.value;
  const isElsewhere = place && place.runtime.id !== choice.value.runtime;
  return (
    <li>
      <button
        type="button"
        class="scheme"
        aria-pressed={chosen === name && configText === null}
        disabled={isBusy.value || !place}
        onClick={() => model && chooseScheme(name, model)}
      >
        <span class="scheme-name">
          <b>{shortName(name)}</b> <code>{name}</code>
        </span>
        <span class="scheme-size">
          {note && <LossPill note={note} />} {totals ? bytesText(totals.bytesAfter) : ''}
        </span>
        <span class="fine scheme-text">
          {/^GGUF /.test(title) ? '' : `${title}. `}
          {preset.description}
          {isElsewhere && ` For ${place.runtime.title}.`}
          {!place && ' Not for this model.'}
        </span>
      </button>
    </li>
  );
}

export function SchemeList() {
  const search = useSignal('');
  const model = opened.value?.model;
  const { runtime } = choice.value;
  useEffect(() => {
    if (model) lookAtAll(model);
  }, [model, runtime]);
  const sorted = useComputed(() => {
    const current = opened.value?.model;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = presets.value.filter((preset) => {
      const text = `${preset.name} ${shortName(preset.name)} ${preset.title} ${preset.description}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const rank = ({ name }: Preset) => {
      const [place] = current ? runtimesFor(name, current) : [];
      const near = !place ? 2 : place.runtime.id === choice.value.runtime ? 0 : 1;
      return 2 * near + (usualPresets.has(name) ? 0 : 1);
    };
    return found
      .map((preset) => ({ preset, rank: rank(preset) }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ preset }) => preset);
  });
  return (
    <div class="schemes">
      <input
        type="search"
        aria-label="Search schemes"
        placeholder={`Search ${presets.value.length} schemes: int4, fp8, small…`}
        value={search.value}
        onInput={(event) => {
          search.value = event.currentTarget.value;
        }}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <ul class="scheme-rows" aria-label="Schemes" tabIndex={0}>
        {sorted.value.map((preset) => (
          <Row key={preset.name} preset={preset} />
        ))}
      </ul>
      {sorted.value.length === 0 && <p class="fine">No scheme matches “{search.value}”.</p>}
    </div>
  );
}
