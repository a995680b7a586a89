// Bytes before and after as two bars on one scale; of the second, what was quantized and what was copied.
import type { Plan } from 'wasmquant';
import { bytes } from '../app/figures';

function share(part: number, whole: number): string {
  return `${(100 * part) / Math.max(1, whole)}%`;
}

export function SizeBar({ plan }: { plan: Plan }) {
  const { bytesBefore, bytesAfter } = plan.totals;
  const quantized = plan.tensors.reduce((sum, row) => sum + (row.action === 'copy' ? 0 : row.bytesAfter), 0);
  const scale = Math.max(bytesBefore, bytesAfter);
  const text = `${bytes(bytesBefore)} before; ${bytes(bytesAfter)} after, of which ${bytes(quantized)} quantized and ${bytes(bytesAfter - quantized)} unchanged`;
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
