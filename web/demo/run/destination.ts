// Where finished files go: browser storage with download links, or straight into a folder on disk.
import { computed, signal } from '@preact/signals';
import { planned } from '../configure/choice';

export type Destination = 'download' | 'folder';

/** Null until the user decides; see `destination`. */
export const chosenDestination = signal<Destination | null>(null);
export const canWriteFolder = typeof window !== 'undefined' && 'showDirectoryPicker' in window;

/** Above this many bytes of output a folder is proposed: browser storage would hold a second copy of it. */
const folderProposedFromBytes = 1e9;
export const destination = computed<Destination>(() => {
  const bytesAfter = planned.value.plan?.totals.bytesAfter ?? 0;
  return chosenDestination.value ?? (canWriteFolder && bytesAfter > folderProposedFromBytes ? 'folder' : 'download');
});
