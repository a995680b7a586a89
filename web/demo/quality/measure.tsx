// What quantization costs a language model, in bits per byte of text.
import type { Evaluation, Model } from 'wasmquant';
import { plural } from '../../present/units';
import { runnableRun } from '../inspect/kept-model';
import { opened } from '../open/opened';
import { type FinishedRun, runs } from '../run/runs';
import { isBusy } from './job';
import { difference, measure, measured } from './measurements';
import { sequences } from './texts';

function Row({ title, found, before }: { title: string; found: Evaluation; before: Evaluation | null }) {
  const change = before && difference(before, found);
  return (
    <tr>
      <th scope="row">{title}</th>
      <td>{found.bitsPerByte === null ? '–' : found.bitsPerByte.toFixed(4)}</td>
      <td>
        {change ? `${change.mean < 0 ? '−' : '+'}${Math.abs(change.mean).toFixed(4)} ± ${change.error.toFixed(4)}` : ''}
      </td>
      <td>{found.perplexity.toPrecision(4)}</td>
    </tr>
  );
}

function Results({ model, list }: { model: Model; list: FinishedRun[] }) {
  const before = measured(model, null);
  const rows = list.flatMap((done) => {
    const found = measured(model, done.number);
    return found
      ? [<Row key={done.number} title={`Run ${done.number}, ${done.configTitle}`} found={found} before={before} />]
      : [];
  });
  if (!before && rows.length === 0) return null;
  return (
    <table class="compare-table">
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col">Bits per byte</th>
          <th scope="col">Change</th>
          <th scope="col">Perplexity of a token</th>
        </tr>
      </thead>
      <tbody>
        {before && <Row title="As opened" found={before} before={null} />}
        {rows}
      </tbody>
    </table>
  );
}

export function Measure() {
  const model = opened.value?.model;
  if (!model) return null;
  const run = runnableRun(model);
  const before = measured(model, null);
  return (
    <div class="quality-part">
      <h3>What it costs</h3>
      <p class="fine">
        Bits per byte of the text to measure on: how well the model predicts it, lower is better. ± is the standard
        error.
      </p>
      <Results model={model} list={runs.value.filter((done) => done.model === model)} />
      {before && (
        <p class="fine">
          Measured on the first {plural(before.sequences, 'window')} of {before.length} tokens of the text. The command
          line gives the same numbers with <code>evaluate MODEL --text FILE --sequences {sequences}</code>, and takes
          the whole text without <code>--sequences</code>.
        </p>
      )}
      <div class="actions">
        <button type="button" class="button" disabled={isBusy.value} onClick={() => void measure(model, run)}>
          {run ? `Measure the model and run ${run.number}` : 'Measure the model'}
        </button>
      </div>
    </div>
  );
}
