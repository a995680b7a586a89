// What a plan leaves as it is and why, the largest part first.
import type { Coverage } from 'wasmquant';
import { percentText, shownLeft } from '../../present/coverage';
import { bytes, count } from '../app/figures';

export function LeftList({ coverage }: { coverage: Coverage }) {
  const { shown, more } = shownLeft(coverage.left);
  const [largest] = shown;
  if (!largest) return null;
  const left = coverage.bytes - coverage.quantizedBytes;
  return (
    <details class="left-list">
      <summary>
        Left as they are: {bytes(left)}, {percentText(left, coverage.bytes)} of the model. Largest part: {largest.text}
      </summary>
      <ul>
        {shown.map((row) => (
          <li key={`${row.rule} ${row.text}`}>
            {bytes(row.bytes)} ({percentText(row.bytes, coverage.bytes)}), {count(row.tensors)}{' '}
            {row.tensors === 1 ? 'tensor' : 'tensors'}: {row.text}
          </li>
        ))}
        {more !== '' && <li>{more}</li>}
      </ul>
    </details>
  );
}
