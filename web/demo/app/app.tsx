// One page in three states: before a model, choosing, and the result of a run. Only the first is loaded at once.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { FirstView } from '../first/first-view';
import { FileInput } from '../open/file-input';
import { openFailure, opening } from '../open/opened';
import { Announcer } from './announcer';
import { quantizer, startFailure } from './engine';
import { explain, FailureMessage } from './failure';
import { links } from './links';
import { stage } from './stage';

/** The views of the other states; null until they are loaded. */
const later = signal<{ ChooseView: ComponentType; ResultView: ComponentType } | null>(null);

export async function loadViews(): Promise<void> {
  try {
    later.value ??= await import('./later');
  } catch (error) {
    startFailure.value = explain(error, 'A part of the page could not be loaded');
  }
}

function Header() {
  return (
    <header class="page-header">
      <b class="page-name">wasmquant</b>
      <span class="fine">Your files stay on this machine.</span>
      <nav aria-label="Links">
        {stage.value !== 'open' && <FileInput id="files" title="Open another" look="button button-small" />}
        {links.map(({ title, address }) => (
          <a key={title} href={address} target="_blank" rel="noopener">
            {title}
          </a>
        ))}
        {quantizer.value && <span class="fine version">{quantizer.value.version.library}</span>}
      </nav>
    </header>
  );
}

function Stage() {
  if (stage.value === 'open') return <FirstView />;
  if (!later.value) return <p class="fine">Loading…</p>;
  const { ChooseView, ResultView } = later.value;
  return stage.value === 'choose' ? <ChooseView /> : <ResultView />;
}

export function App() {
  const isElsewhere = stage.value !== 'open';
  return (
    <>
      <Header />
      <main>
        {startFailure.value && <FailureMessage failure={startFailure.value} />}
        {isElsewhere && opening.value && <p class="fine">Opening {opening.value}…</p>}
        {isElsewhere && openFailure.value && <FailureMessage failure={openFailure.value} />}
        <Stage />
      </main>
      <Announcer />
    </>
  );
}
