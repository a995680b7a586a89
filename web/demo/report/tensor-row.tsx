// One tensor: a line to scan, and on demand the deciding rule, what is written and every error figure. Names come from
// files and are untrusted: they are only ever text.
import { useComputed, useSignal } from '@preact/signals';
import type { PlannedTensor } from 'wasmquant';
import { schemeText } from '../../present/spec_text';
import { bytesText, shapeText } from '../../present/units';
import { percent } from '../../present/verdict';
import { canSelect, isSelectable, select, selected } from '../configure/selection';
import { run } from '../run/runs';
import { ErrorText } from './error-cell';
import type { ErrorKind } from './errors';
import type { Row } from './rows';
import { TensorDetail } from './tensor-detail';

function RowError({ row, kind, measured }: { row: Row; kind: ErrorKind; measured: boolean }) {
  if (row.error === null)
    return <span class="fine">{measured && row.action === 'copy' && !row.isFormer ? 'unchanged' : '–'}</span>;
  if (row.isFormer)
    return (
      <span class="fine" title="From the last run, which quantized this tensor differently">
        was {percent(row.error)}
      </span>
    );
  return (
    <>
      <ErrorText kind={kind} error={row.error} />
      {row.worst && <span class="fine">highest</span>}
    </>
  );
}

interface RowProps {
  row: Row;
  kind: ErrorKind;
  measured: boolean;
  /** Whether it stands below the line of its group. */
  isMember?: boolean;
}

/** The reason without the names of keys, which the details have. */
function reasonOf({ reason: { text } }: PlannedTensor): string {
  return text
    .replace(/^global_quant_config is not for (.+?): .*/, '$1 stay as they are; mark the row to quantize it')
    .replace(/^global_quant_config(; )?/, '');
}

export function Shape({ row: { shape, dtype } }: { row: PlannedTensor }) {
  return (
    <td class="cell-shape">
      <span>{shapeText(shape)}</span>
      <span class="fine">{dtype}</span>
    </td>
  );
}

export function Becomes({ row }: { row: PlannedTensor }) {
  return (
    <td class="cell-spec">
      <span>
        <span class={`badge badge-${row.action}`}>
          {row.action === 'copy' ? 'copy' : (row.spec?.dtype ?? row.action)}
        </span>
        {row.spec && (row.stages ?? [row.spec]).map(schemeText).join(', then ')}
      </span>
      <span class="fine reason">{reasonOf(row)}</span>
    </td>
  );
}

export function Size({ before, after }: { before: number; after: number }) {
  return (
    <td class="cell-size">
      {before !== after && <span class="size-before">{bytesText(before)} → </span>}
      {bytesText(after)}
    </td>
  );
}

export function TensorRow({ row, kind, measured, isMember = false }: RowProps) {
  const open = useSignal(false);
  const active = useComputed(() => run.value.state === 'running' && run.value.progress?.tensor === row.name);
  const states = [
    row.worst && 'row-worst',
    active.value && 'row-active',
    open.value && 'row-open',
    isMember && 'row-member',
  ].filter(Boolean);
  return (
    <>
      <tr class={states.join(' ')}>
        <td class="cell-mark">
          {canSelect.value && isSelectable(row) && (
            <input
              type="checkbox"
              aria-label={`Select ${row.name}`}
              checked={selected.value.has(row.name)}
              onChange={(event) => select([row.name], event.currentTarget.checked)}
            />
          )}
        </td>
        <td class="cell-name">
          <button
            type="button"
            aria-expanded={open.value}
            onClick={() => {
              open.value = !open.value;
            }}
          >
            {row.name}
          </button>
          <span class="fine">{row.layerType || 'unknown type'}</span>
        </td>
        <Shape row={row} />
        <Becomes row={row} />
        <Size before={row.bytesBefore} after={row.bytesAfter} />
        <td class="cell-error">
          <RowError row={row} kind={kind} measured={measured} />
        </td>
      </tr>
      {open.value && (
        <tr class="row-detail">
          <td colSpan={6}>
            <TensorDetail row={row} kind={kind} />
          </td>
        </tr>
      )}
    </>
  );
}
