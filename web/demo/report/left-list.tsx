// What a plan does not quantize and why, the largest part first.
import type { Coverage } from 'wasmquant';
import { percentText, shownLeft } from '../../present/coverage';
import { bytesText, countText } from '../../present/units';

export function LeftList({ coverage }: { coverage: Coverage }) {
  const { shown, more } = shownLeft(coverage.left);
  const [largest] = shown;
  if (!largest) return null;
  const left = coverage.bytes - coverage.quantizedBytes;
  return (
    <details class="left-list">
      <summary>
        Left as they are: {bytesText(left)}, {percentText(left, coverage.bytes)} of the model. Largest part:{' '}
        {largest.text}
      </summary>
      <ul>
        {shown.map((row) => (
          <li key={`${row.rule} ${row.text}`}>
            {bytesText(row.bytes)} ({percentText(row.bytes, coverage.bytes)}), {countText(row.tensors)}{' '}
            {row.tensors === 1 ? 'tensor' : 'tensors'}: {row.text}
          </li>
        ))}
        {more !== '' && <li>{more}</li>}
      </ul>
    </details>
  );
}
