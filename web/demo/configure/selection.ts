// The selected rows of the table.
import { computed, effect, signal } from '@preact/signals';
import type { PlannedTensor } from 'wasmquant';
import { opened } from '../open/opened';
import { chosenConfig, dialectOf, planned } from './choice';
import { isEditable } from './edit-layers';

/** Names of tensors. */
export const selected = signal<ReadonlySet<string>>(new Set());

export const canSelect = computed(() => {
  const config = chosenConfig.value;
  return config !== null && planned.value.plan !== null && isEditable(config, dialectOf(config));
});

/** Layers of the selected tensors. */
export const selectedLayers = computed(() => {
  const rows = planned.value.plan?.tensors ?? [];
  return rows.filter(({ name }) => selected.value.has(name)).map(({ layer }) => layer);
});

/** Whether a row is a weight that a config can configure. */
export function isSelectable({ layer, reason }: PlannedTensor): boolean {
  return layer !== '' && reason.rule !== 'not-a-weight' && reason.rule !== 'not-quantizable';
}

export function select(names: readonly string[], isMarked: boolean): void {
  const next = new Set(selected.value);
  for (const name of names) isMarked ? next.add(name) : next.delete(name);
  selected.value = next;
}

let model = opened.peek()?.model;
effect(() => {
  if (opened.value?.model === model) return;
  model = opened.value?.model;
  selected.value = new Set();
});
