// Fields that accept dropped files; elsewhere on the page a drop opens a model.
import { useSignal } from '@preact/signals';

/** Handlers of a field, and whether files are dragged over it. */
export function useFieldDrop(take: (files: File[]) => void) {
  const over = useSignal(false);
  return {
    isOver: over.value,
    handlers: {
      onDragOver: () => {
        over.value = true;
      },
      onDragLeave: () => {
        over.value = false;
      },
      onDrop: (event: DragEvent) => {
        event.preventDefault();
        event.stopPropagation();
        over.value = false;
        window.dispatchEvent(new DragEvent('dragleave'));
        take([...(event.dataTransfer?.files ?? [])]);
      },
    },
  };
}
