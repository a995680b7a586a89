// Reads an ONNX file without its weights: the core says which bytes it wants next, and skips the rest.

import type { Instance } from './instance.js';
import type { BoundModelIndex } from './module.js';
import type { FileSource } from './source.js';

/** Bytes of a read at least: what follows is often wanted, too, and a request costs more. */
const leastBytes = 64 * 1024;

/** `prefix`: the file's first bytes. Returns the names of its files with external data. */
export async function feedSkeleton(
  instance: Instance,
  index: BoundModelIndex,
  file: number,
  source: FileSource,
  prefix: Uint8Array,
): Promise<string[]> {
  let known = { begin: 0, bytes: prefix };
  for (let at = 0; ; ) {
    const rest = known.bytes.subarray(at - known.begin);
    const next = instance.withBytes(rest, (pointer) =>
      instance.call<{ offset: number; bytes: number; locations?: string[] }>(() =>
        index.feed(file, pointer, rest.byteLength),
      ),
    );
    if (next.locations) return next.locations;
    at = next.offset;
    const end = known.begin + known.bytes.byteLength;
    if (at < known.begin || at + next.bytes > end) {
      const length = Math.min(Math.max(next.bytes, leastBytes), source.size - at);
      known = { begin: at, bytes: await source.read(at, length) };
    }
  }
}
