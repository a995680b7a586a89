// The width of an element in CSS pixels, as it is drawn and whenever it changes.
import { type Signal, useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/** Of the element of `place`; `before` until it is drawn, or while it is hidden. */
export function useWidth(place: RefObject<Element | null>, before: number): Signal<number> {
  const width = useSignal(before);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const measure = () => {
      if (element.clientWidth > 0) width.value = element.clientWidth;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
