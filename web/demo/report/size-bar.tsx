// Bytes before and after as two bars on one scale, the second split into quantized and copied.
import type { Plan } from 'wasmquant';
import { bytesText } from '../../present/units';

function share(part: number, whole: number): string {
  return `${(100 * part) / Math.max(1, whole)}%`;
}

export function SizeBar({ plan }: { plan: Plan }) {
  const { bytesBefore, bytesAfter } = plan.totals;
  const quantized = plan.tensors.reduce((sum, row) => sum + (row.action === 'copy' ? 0 : row.bytesAfter), 0);
  const scale = Math.max(bytesBefore, bytesAfter);
  const text = `${bytesText(bytesBefore)} before; ${bytesText(bytesAfter)} after, of which ${bytesText(quantized)} quantized and ${bytesText(bytesAfter - quantized)} unchanged`;
  return (
    <div class="size-bar" role="img" aria-label={text} title={text}>
      <div class="size-bar-before" style={{ width: share(bytesBefore, scale) }} />
      <div class="size-bar-after">
        <div class="size-bar-quantized" style={{ width: share(quantized, scale) }} />
        <div class="size-bar-copied" style={{ width: share(bytesAfter - quantized, scale) }} />
      </div>
    </div>
  );
}
