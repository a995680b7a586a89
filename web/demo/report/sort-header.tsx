import type { Order, SortKey } from './rows';

interface Properties {
  title: string;
  sortKey: SortKey;
  order: Order;
  onSort: (key: SortKey) => void;
}

export function SortHeader({ title, sortKey, order, onSort }: Properties) {
  const active = order.key === sortKey;
  const direction = order.descending ? 'descending' : 'ascending';
  return (
    <th scope="col" class={`column-${sortKey}`} aria-sort={active ? direction : 'none'}>
      <button type="button" onClick={() => onSort(sortKey)}>
        {title}
        <span aria-hidden="true">{active ? (order.descending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}
