// Exports apart from the model: the report, and the same run as a command line and as JavaScript.
import { useSignal } from '@preact/signals';
import { quantizer } from '../app/engine';
import { choice, chosenConfig, needsText, planned } from '../configure/choice';
import { needsActivations } from '../configure/static-inputs';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';
import { shownRun } from '../run/runs';
import { reportJson, saveText } from './report-file';
import { reportHtml } from './report-html';
import { commandLine, javaScript } from './snippets';

function Code({ title, text }: { title: string; text: string }) {
  const copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, 2000);
  };
  return (
    <div class="snippet">
      <div class="snippet-head">
        <h3>{title}</h3>
        <button type="button" class="button button-small" aria-label={`Copy: ${title}`} onClick={() => void copy()}>
          {copied.value ? 'Copied' : 'Copy'}
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways must be reachable by keyboard */}
      <section class="snippet-text" tabIndex={0} aria-label={title}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
    </div>
  );
}

function Reports() {
  const done = shownRun.value;
  const version = quantizer.value?.version.library ?? '';
  if (!done) return <p class="fine">The report is there after the run.</p>;
  return (
    <div class="actions">
      <button
        type="button"
        class="button"
        onClick={() => saveText('report.html', 'text/html', reportHtml(done, version))}
      >
        Save as HTML
      </button>
      <button
        type="button"
        class="button"
        onClick={() => saveText('report.json', 'application/json', reportJson(done, version))}
      >
        Save as JSON
      </button>
    </div>
  );
}

export function CodeView() {
  if (!opened.value || !planned.value.plan) return null;
  const { location } = opened.value;
  const { configText } = choice.value;
  const config = chosenConfig.value ?? {};
  const given = needsActivations(config) ? feeds() : null;
  const calibration = given ? { feeds: given.groups } : needsText(config) ? ('text' as const) : null;
  const snippet = { choice: choice.value, location, calibration };
  return (
    <section class="panel" aria-labelledby="report">
      <h2 id="report">Report</h2>
      <Reports />
      <h2>The same in code</h2>
      <Code title="Command line" text={commandLine(snippet)} />
      {given && (
        <p class="fine">
          The command line runs no ONNX model: activations.safetensors holds what goes into the layers, as{' '}
          <code>&lt;layer&gt;.input</code>.
        </p>
      )}
      {configText !== null && (
        <div class="actions">
          <button
            type="button"
            class="button button-small"
            onClick={() => saveText('config.json', 'application/json', `${configText.trim()}\n`)}
          >
            Save config.json
          </button>
        </div>
      )}
      <Code title="JavaScript" text={javaScript(snippet)} />
    </section>
  );
}
