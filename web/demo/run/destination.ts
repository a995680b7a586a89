// Where finished files go: browser storage with download links, or straight into a folder or a file on disk.
import { computed, signal } from '@preact/signals';
import { formats } from 'wasmquant/internal';
import { planned } from '../configure/choice';

export type Destination = 'download' | 'folder';

const hasSavePicker = typeof window !== 'undefined' && 'showSaveFilePicker' in window;

/** Whether the output is a single file without a config.json, which can be named on disk. */
export const isSingleFile = computed(() => {
  const { plan } = planned.value;
  return hasSavePicker && plan?.files.length === 1 && formats.outputs[plan.format].isWholeFile;
});

/** Null until the user decides; see `destination`. */
export const chosenDestination = signal<Destination | null>(null);
export const canWriteFolder = typeof window !== 'undefined' && 'showDirectoryPicker' in window;

/** Above this output size a folder is proposed, because browser storage would need a second copy. */
const folderProposedFromBytes = 1e9;
export const destination = computed<Destination>(() => {
  const bytesAfter = planned.value.plan?.totals.bytesAfter ?? 0;
  return chosenDestination.value ?? (canWriteFolder && bytesAfter > folderProposedFromBytes ? 'folder' : 'download');
});
