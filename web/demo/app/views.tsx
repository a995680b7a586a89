// Below each state: one view at a time, or none. WAI-ARIA tabs: arrows move, only the chosen tab takes the focus.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { CompareView } from '../compare/compare-view';
import { CodeView } from '../export/code-view';
import { ImproveView } from '../improve/improve-view';
import { QualityView } from '../quality/quality-view';
import { TensorTable } from '../report/tensor-table';

type ViewName = 'tensors' | 'improve' | 'quality' | 'compare' | 'code';

const views: { name: ViewName; title: string; content: () => ComponentChildren }[] = [
  { name: 'tensors', title: 'Tensors', content: () => <TensorTable /> },
  { name: 'improve', title: 'Improve', content: () => <ImproveView /> },
  { name: 'quality', title: 'Calibrate and measure', content: () => <QualityView /> },
  { name: 'compare', title: 'Compare runs', content: () => <CompareView /> },
  { name: 'code', title: 'Report and code', content: () => <CodeView /> },
];

/** Null: none. */
const shown = signal<ViewName | null>(null);

function move(event: KeyboardEvent, offered: typeof views): void {
  const at = offered.findIndex(({ name }) => name === shown.value);
  const next =
    event.key === 'ArrowRight'
      ? at + 1
      : event.key === 'ArrowLeft'
        ? at - 1
        : event.key === 'Home'
          ? 0
          : event.key === 'End'
            ? offered.length - 1
            : null;
  if (next === null) return;
  event.preventDefault();
  const chosen = offered[(next + offered.length) % offered.length];
  if (!chosen) return;
  shown.value = chosen.name;
  document.getElementById(`tab-${chosen.name}`)?.focus();
}

export function showView(name: ViewName): void {
  shown.value = name;
}

/** Everything else, one click away. `of`: the state that the page is in. */
export function Views({ of }: { of: 'choose' | 'result' }) {
  const offered = views.filter(({ name }) => of === 'result' || name !== 'improve');
  const view = offered.find(({ name }) => name === shown.value);
  return (
    <div class="views">
      <div class="tabs" role="tablist" aria-label="More" onKeyDown={(event) => move(event, offered)}>
        {offered.map(({ name, title }, i) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={name === view?.name}
            aria-controls="view"
            tabIndex={name === view?.name || (!view && i === 0) ? 0 : -1}
            onClick={() => {
              shown.value = name === shown.value ? null : name;
            }}
          >
            {title}
          </button>
        ))}
      </div>
      <div id="view" role="tabpanel" aria-labelledby={`tab-${view?.name ?? offered[0]?.name}`} hidden={!view}>
        {view?.content()}
      </div>
    </div>
  );
}
