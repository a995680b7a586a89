// Tensors whose names differ only in numbers, with the same shape, spec and word for the error: one line, as the command line has it.
import { useComputed } from '@preact/signals';
import type { PlannedTensor } from 'wasmquant';
import type { Group } from '../../present/collapse';
import { countText } from '../../present/units';
import { percent } from '../../present/verdict';
import { canSelect, isSelectable, select, selected } from '../configure/selection';
import { run } from '../run/runs';
import { ErrorText } from './error-cell';
import type { Joined } from './rows';
import { Becomes, Shape, Size } from './tensor-row';

interface GroupProps {
  group: Group<PlannedTensor>;
  joined: Joined;
  isOpen: boolean;
  onToggle: () => void;
}

function Mark({ group: { name, rows } }: { group: Group<PlannedTensor> }) {
  const names = rows.filter(isSelectable).map((row) => row.name);
  if (!canSelect.value || names.length === 0) return null;
  const marked = names.filter((each) => selected.value.has(each)).length;
  return (
    <input
      type="checkbox"
      aria-label={`Select ${name}`}
      checked={marked === names.length}
      ref={(input) => {
        if (input) input.indeterminate = marked > 0 && marked < names.length;
      }}
      onChange={(event) => select(names, event.currentTarget.checked)}
    />
  );
}

const sum = (rows: PlannedTensor[], of: (row: PlannedTensor) => number) =>
  rows.reduce((total, row) => total + of(row), 0);

/** The first row, with the name of the group where the reason names its layer. */
function inWordsOf({ name }: Group<PlannedTensor>, first: PlannedTensor): PlannedTensor {
  const { layer, reason } = first;
  if (layer === '' || !first.name.startsWith(layer)) return first;
  const groupLayer = name.slice(0, name.length - (first.name.length - layer.length));
  return { ...first, reason: { ...reason, text: reason.text.replaceAll(layer, groupLayer) } };
}

export function GroupRow({ group, joined, isOpen, onToggle }: GroupProps) {
  const { name, rows } = group;
  const names = new Set(rows.map((row) => row.name));
  const active = useComputed(() => run.value.state === 'running' && names.has(run.value.progress?.tensor ?? ''));
  const errors = rows.flatMap((row) => joined.errorOf(row) ?? []);
  const isWorst = rows.some((row) => joined.isWorst(row));
  const first = rows[0];
  if (!first) return null;
  return (
    <tr class={['row-group', isWorst && 'row-worst', active.value && 'row-active'].filter(Boolean).join(' ')}>
      <td class="cell-mark">
        <Mark group={group} />
      </td>
      <td class="cell-name">
        <button type="button" aria-expanded={isOpen} onClick={onToggle}>
          {name}
        </button>
        <span class="fine">
          ×{countText(rows.length)} {first.layerType || 'unknown type'}
        </span>
      </td>
      <Shape row={first} />
      <Becomes row={inWordsOf(group, first)} />
      <Size before={sum(rows, ({ bytesBefore }) => bytesBefore)} after={sum(rows, ({ bytesAfter }) => bytesAfter)} />
      <td class="cell-error">
        {errors.length === 0 ? (
          <span class="fine">{first.action === 'copy' && joined.isMeasured ? 'unchanged' : '–'}</span>
        ) : joined.isFormer(first) ? (
          <span class="fine">was at most {percent(Math.max(...errors))}</span>
        ) : (
          <>
            <span class="fine">at most </span>
            <ErrorText kind={joined.kind} error={Math.max(...errors)} />
          </>
        )}
      </td>
    </tr>
  );
}
