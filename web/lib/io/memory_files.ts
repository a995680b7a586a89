// Outputs that are kept in memory, or where the browser keeps Blobs, to be opened again.

import type { FileWriter } from '../api/types.js';

export function memoryScratch() {
  const files = new Map<string, Blob>();
  const target: FileWriter = {
    async write(name) {
      const parts: BlobPart[] = [];
      return new WritableStream<Uint8Array>({
        write: (bytes) => {
          parts.push(bytes.slice());
        },
        close: () => {
          files.set(name, new Blob(parts));
        },
      });
    },
  };
  /** A list is one folder: weights in `onnx/` are in it; modules stay in theirs. */
  const named = (path: string) => path.replace(/^onnx\//, '');
  return {
    target,
    source: () => [...files].map(([path, blob]) => new File([blob], named(path))),
    async remove() {
      files.clear();
    },
  };
}
