import { useComputed, useSignal } from '@preact/signals';
import type { PlannedTensor } from 'wasmquant';
import type { Group } from '../../present/collapse';
import { capital } from '../../present/sentence';
import { countText } from '../../present/units';
import { lastRun } from '../app/stage';
import { shownPlan } from '../configure/choice';
import { canSelect, isSelectable, select, selected } from '../configure/selection';
import { SelectionBar } from '../configure/selection-bar';
import { shownRun } from '../run/runs';
import { ruleOf } from './errors';
import { GroupRow } from './group-row';
import { LeftList } from './left-list';
import { groupsOf, joinRows, type Order, type SortKey, selectTensors } from './rows';
import { SortHeader } from './sort-header';
import { TensorRow } from './tensor-row';
import { TreeView } from './tree-view';

/** Rows drawn at first and added per click, so that a model with thousands of tensors opens quickly. */
const rowsAtOnce = 60;

/** Selects the rows that match the search. */
function MarkAll({ rows }: { rows: PlannedTensor[] }) {
  if (!canSelect.value) return <span class="visually-hidden">Selected</span>;
  const names = rows.filter(isSelectable).map(({ name }) => name);
  const marked = names.filter((name) => selected.value.has(name)).length;
  return (
    <input
      type="checkbox"
      aria-label="Select all rows of the table"
      checked={marked > 0 && marked === names.length}
      ref={(input) => {
        if (input) input.indeterminate = marked > 0 && marked < names.length;
      }}
      onChange={(event) => select(names, event.currentTarget.checked)}
    />
  );
}

type Line = Group<PlannedTensor> | { tensor: PlannedTensor; isMember: boolean };

function linesOf(groups: Group<PlannedTensor>[], open: ReadonlySet<string>): Line[] {
  return groups.flatMap((group): Line[] => {
    const isMember = group.rows.length > 1;
    const lines = group.rows.map((tensor) => ({ tensor, isMember }));
    if (!isMember) return lines;
    return open.has(group.name) ? [group, ...lines] : [group];
  });
}

function toggled(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

export function TensorTable() {
  const search = useSignal('');
  const asTree = useSignal(false);
  const order = useSignal<Order>({ key: 'file', descending: false });
  const shown = useSignal(rowsAtOnce);
  // Of the last run, where another choice was not run: what did not change still holds.
  const measured = useComputed(() => {
    const run = shownRun.value ?? lastRun.value;
    return run && { report: run.report, isCurrent: run === shownRun.value };
  });
  const joined = useComputed(() => (shownPlan.value ? joinRows(shownPlan.value, measured.value) : null));
  const rows = useComputed(() => (joined.value ? selectTensors(joined.value, search.value, order.value) : []));
  /** Names of the groups whose tensors have lines of their own. */
  const open = useSignal<ReadonlySet<string>>(new Set());
  const lines = useComputed(() => (joined.value ? linesOf(groupsOf(rows.value, joined.value), open.value) : []));
  const kind = joined.value?.kind ?? 'weight error';

  const all = joined.value;
  if (!shownPlan.value || !all) return null;
  const { tensors } = all;
  const sortBy = (key: SortKey) => {
    const { key: current, descending } = order.value;
    // Third click: back to file order. Sizes start with the largest, errors with the worst.
    const first = key === 'size' || key === 'error';
    if (current !== key) order.value = { key, descending: first };
    else if (descending === first) order.value = { key, descending: !first };
    else order.value = { key: 'file', descending: false };
  };
  const header = (key: SortKey, title: string) => (
    <SortHeader key={key} title={title} order={order.value} sortKey={key} onSort={sortBy} />
  );
  const hidden = lines.value.length - shown.value;
  return (
    <section class="tensors" aria-labelledby="tensors">
      <div class="tensors-head">
        <h2 id="tensors">Tensors</h2>
        <span class="fine" role="status">
          {rows.value.length === tensors.length
            ? countText(tensors.length)
            : `${countText(rows.value.length)} of ${countText(tensors.length)}`}
        </span>
        <button
          type="button"
          class="button button-small"
          aria-pressed={asTree.value}
          onClick={() => {
            asTree.value = !asTree.value;
          }}
        >
          Tree
        </button>
        <input
          type="search"
          aria-label="Search tensors"
          placeholder="Search name, type, dtype"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
        />
      </div>
      <LeftList coverage={shownPlan.value.totals.coverage} />
      {asTree.value ? (
        <TreeView rows={rows.value} isSearched={search.value.trim() !== ''} />
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col" class="column-mark">
                <MarkAll rows={rows.value} />
              </th>
              {header('name', 'Tensor')}
              <th scope="col" class="column-shape">
                Shape
              </th>
              <th scope="col">Becomes</th>
              {header('size', 'Size')}
              {header('error', kind === 'output error' ? 'Output error' : 'Weight error')}
            </tr>
          </thead>
          <tbody>
            {lines.value.slice(0, shown.value).map((line) =>
              'rows' in line ? (
                <GroupRow
                  key={line.name}
                  group={line}
                  joined={all}
                  isOpen={open.value.has(line.name)}
                  onToggle={() => {
                    open.value = toggled(open.value, line.name);
                  }}
                />
              ) : (
                <TensorRow
                  key={line.tensor.name}
                  row={all.rowOf(line.tensor)}
                  kind={kind}
                  measured={measured.value !== null}
                  isMember={line.isMember}
                />
              ),
            )}
          </tbody>
        </table>
      )}
      {measured.value && !asTree.value && <p class="fine">{capital(ruleOf(kind))}.</p>}
      <SelectionBar />
      {rows.value.length === 0 && <p class="empty">No tensor matches “{search.value}”.</p>}
      {!asTree.value && hidden > 0 && (
        <button
          type="button"
          class="button"
          onClick={() => {
            shown.value += rowsAtOnce;
          }}
        >
          Show more ({countText(hidden)} hidden)
        </button>
      )}
    </section>
  );
}
