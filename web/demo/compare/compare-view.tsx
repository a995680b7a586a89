// Two runs of this visit side by side: totals, then every tensor that both quantized, largest difference first.
import { signal, useComputed } from '@preact/signals';
import type { TensorReport } from 'wasmquant';
import { capital } from '../../present/sentence';
import { bytesText, plural } from '../../present/units';
import { lossText, verdictOf } from '../../present/verdict';
import { ErrorText } from '../report/error-cell';
import { type ErrorKind, type Errors, errorsOf, type LayerError, ruleOf } from '../report/errors';
import { lossOf } from '../result/sentence';
import { type FinishedRun, runs } from '../run/runs';

/** Numbers of the compared runs; null = the last two. */
const chosen = signal<{ left: number | null; right: number | null }>({ left: null, right: null });

const rowsShown = 100;

export function titleOf(done: FinishedRun): string {
  return `${done.number}. ${done.modelTitle}, ${done.configTitle}, ${done.plan.format}`;
}

interface Pair {
  name: string;
  left: LayerError;
  right: LayerError;
}

/** Layers that either run quantized, the largest difference first. */
function pairsOf(left: Errors, right: Errors): Pair[] {
  const others = new Map(right.list.map((layer) => [layer.tensor.name, layer]));
  const none = (tensor: TensorReport): LayerError => ({ tensor, error: null });
  const pairs = left.list.map((layer) => {
    const { name } = layer.tensor;
    return { name, left: layer, right: others.get(name) ?? none(layer.tensor) };
  });
  const known = new Set(pairs.map(({ name }) => name));
  const added = right.list.flatMap((layer) =>
    known.has(layer.tensor.name) ? [] : [{ name: layer.tensor.name, left: none(layer.tensor), right: layer }],
  );
  const size = ({ left: a, right: b }: Pair) => Math.abs((a.error ?? 0) - (b.error ?? 0));
  return [...pairs, ...added].sort((a, b) => size(b) - size(a));
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

function Cell({ layer: { tensor, error }, kind }: { layer: LayerError; kind: ErrorKind }) {
  if (error === null) return <>not quantized</>;
  return (
    <>
      <ErrorText kind={kind} error={error} />
      <span class="fine">
        {tensor.action === 'copy' ? tensor.dtype : tensor.spec?.dtype}, {bytesText(tensor.bytesAfter)}
      </span>
    </>
  );
}

const signed = (value: number, text: string) => `${value < 0 ? '−' : '+'}${text}`;

/** `2.1× less error`. */
function differenceOf({ left, right }: Pair): string {
  if (left.error === null || right.error === null) return '';
  if (left.error === right.error) return 'same';
  const times = Math.max(left.error, right.error) / Math.min(left.error, right.error);
  return Number.isFinite(times) ? `${times.toFixed(1)}× ${right.error < left.error ? 'less' : 'more'} error` : '';
}

interface Fact {
  label: string;
  left: string;
  right: string;
  difference: string;
}

function factsOf(left: FinishedRun, right: FinishedRun): Fact[] {
  const [a, b] = [left.report.totals, right.report.totals];
  const bytes = b.bytesAfter - a.bytesAfter;
  const bits = b.bitsPerWeight - a.bitsPerWeight;
  const facts: Fact[] = [
    {
      label: 'Size',
      left: bytesText(a.bytesAfter),
      right: bytesText(b.bytesAfter),
      difference: bytes === 0 ? 'same' : signed(bytes, bytesText(Math.abs(bytes))),
    },
    {
      label: 'Bits per quantized weight',
      left: a.bitsPerWeight.toFixed(2),
      right: b.bitsPerWeight.toFixed(2),
      difference: Math.abs(bits) < 0.005 ? 'same' : signed(bits, Math.abs(bits).toFixed(2)),
    },
  ];
  const [before, after] = [lossOf(left), lossOf(right)];
  if (!before || !after || before.kind !== after.kind) return facts;
  const text = ({ kind, increase }: NonNullable<typeof before>) =>
    `${lossText(kind, Math.max(0, increase))}, ${verdictOf(kind, increase)}`;
  const change = after.increase - before.increase;
  return [
    {
      label: 'Measured',
      left: text(before),
      right: text(after),
      difference: change === 0 ? 'same' : change < 0 ? 'better' : 'worse',
    },
    ...facts,
  ];
}

function Comparison({ left, right }: { left: FinishedRun; right: FinishedRun }) {
  const [a, b] = [errorsOf(left.report), errorsOf(right.report)];
  const kind = a.title === b.title ? a.title : null;
  const pairs = kind ? pairsOf(a, b) : [];
  const differing = pairs.filter((pair) => differenceOf(pair) !== 'same');
  const same = pairs.length - differing.length;
  return (
    <>
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
          {factsOf(left, right).map(({ label, left: one, right: other, difference }) => (
            <tr key={label} class="compare-total">
              <th scope="row">{label}</th>
              <td>{one}</td>
              <td>{other}</td>
              <td>{difference}</td>
            </tr>
          ))}
          {kind &&
            differing.slice(0, rowsShown).map((pair) => (
              <tr key={pair.name}>
                <th scope="row">
                  <code>{pair.name}</code>
                </th>
                <td>
                  <Cell layer={pair.left} kind={kind} />
                </td>
                <td>
                  <Cell layer={pair.right} kind={kind} />
                </td>
                <td>{differenceOf(pair)}</td>
              </tr>
            ))}
        </tbody>
      </table>
      <p class="fine">
        {kind
          ? `${capital(ruleOf(kind))}. ${same > 0 ? `${plural(same, 'layer')} of the same error ${same === 1 ? 'is' : 'are'} left out.` : ''}`
          : `Run ${left.number} has the ${a.title} of its layers, run ${right.number} the ${b.title}, so they cannot be compared.`}
      </p>
    </>
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
