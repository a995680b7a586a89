// Below the summary: one view at a time. WAI-ARIA tabs: arrows move, only the chosen tab takes the focus.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { CompareView } from '../compare/compare-view';
import { CodeView } from '../export/code-view';
import { ImproveView } from '../improve/improve-view';
import { opened } from '../open/opened';
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

const shown = signal<ViewName>('tensors');

function move(event: KeyboardEvent): void {
  const at = views.findIndex(({ name }) => name === shown.value);
  const next =
    event.key === 'ArrowRight'
      ? at + 1
      : event.key === 'ArrowLeft'
        ? at - 1
        : event.key === 'Home'
          ? 0
          : event.key === 'End'
            ? views.length - 1
            : null;
  if (next === null) return;
  event.preventDefault();
  const chosen = views[(next + views.length) % views.length];
  if (!chosen) return;
  shown.value = chosen.name;
  document.getElementById(`tab-${chosen.name}`)?.focus();
}

export function Views() {
  if (!opened.value) return <p class="empty">Open a model to see its tensors and what happens to each.</p>;
  const view = views.find(({ name }) => name === shown.value);
  return (
    <div class="views">
      <div class="tabs" role="tablist" aria-label="Views" onKeyDown={move}>
        {views.map(({ name, title }) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={name === shown.value}
            aria-controls="view"
            tabIndex={name === shown.value ? 0 : -1}
            onClick={() => {
              shown.value = name;
            }}
          >
            {title}
          </button>
        ))}
      </div>
      <div id="view" role="tabpanel" aria-labelledby={`tab-${shown.value}`}>
        {view?.content()}
      </div>
    </div>
  );
}
