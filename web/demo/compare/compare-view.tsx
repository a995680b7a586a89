// Two runs of this visit side by side: totals, then every tensor that both quantized, largest difference first.
import { signal, useComputed } from '@preact/signals';
import type { TensorReport } from 'wasmquant';
import { bytesText, decibels } from '../../present/units';
import { type FinishedRun, runs } from '../run/runs';

/** Numbers of the compared runs; null = the last two. */
const chosen = signal<{ left: number | null; right: number | null }>({ left: null, right: null });

const rowsShown = 100;

export function titleOf(done: FinishedRun): string {
  return `${done.number}. ${done.modelTitle}, ${done.configTitle}, ${done.plan.format}`;
}

interface Pair {
  name: string;
  left: TensorReport;
  right: TensorReport;
  /** Improvement of the right one in dB. */
  gain: number;
}

function pairsOf(left: FinishedRun, right: FinishedRun): Pair[] {
  const others = new Map(right.report.tensors.map((tensor) => [tensor.name, tensor]));
  return left.report.tensors
    .flatMap((tensor) => {
      const other = others.get(tensor.name);
      if (!other || (!tensor.error && !other.error)) return [];
      const [a, b] = [tensor, other].map(({ error }) => error?.sqnrDb ?? Number.POSITIVE_INFINITY) as [number, number];
      return [{ name: tensor.name, left: tensor, right: other, gain: a === b ? 0 : b - a }];
    })
    .sort((a, b) => Math.abs(b.gain) - Math.abs(a.gain));
}

function RunChoice({ label, value, side }: { label: string; value: number; side: 'left' | 'right' }) {
  return (
    <div class="field">
      <label for={`compare-${side}`}>{label}</label>
      <select
        id={`compare-${side}`}
        value={value}
        onChange={(event) => {
          chosen.value = { ...chosen.value, [side]: Number(event.currentTarget.value) };
        }}
      >
        {runs.value.map((done) => (
          <option key={done.number} value={done.number}>
            {titleOf(done)}
          </option>
        ))}
      </select>
    </div>
  );
}

function lowest({ report }: FinishedRun): string {
  const values = report.tensors.flatMap(({ error }) => (error ? [error.sqnrDb] : []));
  return values.length === 0 ? '–' : `${decibels(Math.min(...values))} dB`;
}

function Cell({ tensor }: { tensor: TensorReport }) {
  return (
    <>
      {tensor.error ? `${decibels(tensor.error.sqnrDb)} dB` : 'unchanged'}
      <span class="fine">
        {tensor.action === 'copy' ? tensor.dtype : tensor.spec?.dtype}, {bytesText(tensor.bytesAfter)}
      </span>
    </>
  );
}

function Comparison({ left, right }: { left: FinishedRun; right: FinishedRun }) {
  const pairs = pairsOf(left, right);
  const facts: [string, (done: FinishedRun) => string][] = [
    ['Size', (done) => bytesText(done.report.totals.bytesAfter)],
    ['Bits per weight', (done) => done.report.totals.bitsPerWeight.toFixed(2)],
    ['Lowest SQNR', lowest],
  ];
  return (
    <table class="compare-table">
      <thead>
        <tr>
          <th scope="col">Tensor</th>
          <th scope="col">Run {left.number}</th>
          <th scope="col">Run {right.number}</th>
          <th scope="col">Difference</th>
        </tr>
      </thead>
      <tbody>
        {facts.map(([label, of]) => (
          <tr key={label} class="compare-total">
            <th scope="row">{label}</th>
            <td>{of(left)}</td>
            <td>{of(right)}</td>
            <td />
          </tr>
        ))}
        {pairs.slice(0, rowsShown).map(({ name, left: a, right: b, gain }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            <td>
              <Cell tensor={a} />
            </td>
            <td>
              <Cell tensor={b} />
            </td>
            <td>{gain === 0 ? 'same' : `${gain > 0 ? '+' : '−'}${decibels(Math.abs(gain))} dB`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function CompareView() {
  const pair = useComputed(() => {
    const list = runs.value;
    const find = (number: number | null, usual: number) =>
      list.find((done) => done.number === number) ?? list.at(usual) ?? null;
    return { left: find(chosen.value.left, -2), right: find(chosen.value.right, -1) };
  });
  const { left, right } = pair.value;
  return (
    <section class="panel" aria-labelledby="compare">
      <h2 id="compare">Two runs side by side</h2>
      {runs.value.length < 2 || !left || !right ? (
        <p class="fine">Run two different configs to compare what they cost and keep.</p>
      ) : (
        <>
          <div class="compare-choice">
            <RunChoice label="One" side="left" value={left.number} />
            <RunChoice label="Other" side="right" value={right.number} />
          </div>
          <Comparison left={left} right={right} />
        </>
      )}
    </section>
  );
}
