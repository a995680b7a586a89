// Exports apart from the model: the report, and the same run as a command line and as JavaScript.
import { quantizer } from '../app/engine';
import { choice, chosenConfig, planned } from '../configure/choice';
import { hashOf, modelOfLink } from '../open/deep-link';
import { opened } from '../open/opened';
import { shownRun } from '../run/runs';
import { Code } from './code';
import { reportJson, saveText } from './report-file';
import { reportHtml } from './report-html';
import { snippetOf } from './run-snippet';
import { commandLine, javaScript } from './snippets';

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

/** What is on screen as a link; of files of this machine only the choice. */
function ShareLink() {
  const now = opened.value;
  if (!now) return null;
  const { preset, format, configText } = choice.value;
  const model = modelOfLink(now);
  const hash = chosenConfig.value && hashOf({ model, preset, format, configText });
  if (!hash) return null;
  return (
    <>
      <h2>A link to this</h2>
      {model === null && (
        <p class="fine">For whoever opens the same files: a link cannot bring those of this machine.</p>
      )}
      <Code title="Link" text={`${document.baseURI.replace(/#.*/, '')}${hash}`} />
    </>
  );
}

export function CodeView() {
  if (!opened.value || !planned.value.plan) return null;
  const { configText } = choice.value;
  const config = chosenConfig.value ?? {};
  const snippet = snippetOf({ choice: choice.value, config });
  const usesFeeds = snippet.calibration !== null && snippet.calibration !== 'text';
  return (
    <section class="panel" aria-labelledby="report">
      <h2 id="report">Report</h2>
      <Reports />
      <ShareLink />
      <h2>The same in code</h2>
      <h3>Command line</h3>
      <Code title="Command line" text={commandLine(snippet)} />
      {usesFeeds && (
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
      <h3>JavaScript</h3>
      <Code title="JavaScript" text={javaScript(snippet)} />
    </section>
  );
}
