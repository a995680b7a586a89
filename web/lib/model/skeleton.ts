// Reads an ONNX file without its weights, or an .npz archive without its arrays: the core says which bytes it wants
// next, and skips the rest.

import { failure } from '../api/errors.js';
import type { Instance } from '../engine/instance.js';
import type { BoundModelIndex } from '../engine/module.js';
import type { ModelFiles } from '../io/model_files.js';
import type { FileSource } from '../io/source.js';
import type { DeflatedEntry } from './inflate.js';

/** Bytes of a read at least: what follows is often wanted, too, and a request costs more. */
const leastBytes = 64 * 1024;

interface Answer {
  offset: number;
  bytes: number;
  locations: string[];
  deflated: DeflatedEntry[];
}

/** `prefix`: the file's first bytes. Returns the files that belong to it: external data, or arrays that were inflated. */
export async function feedSkeleton(
  instance: Instance,
  index: BoundModelIndex,
  file: number,
  source: FileSource,
  prefix: Uint8Array,
  files: ModelFiles,
): Promise<{ external: FileSource[]; inflated: FileSource[] }> {
  let known = { begin: 0, bytes: prefix };
  for (let at = 0; ; ) {
    const rest = known.bytes.subarray(at - known.begin);
    const next = instance.withBytes(rest, (pointer) =>
      instance.call<Answer>(() => index.feed(file, pointer, rest.byteLength)),
    );
    if (next.bytes === 0) {
      const external: FileSource[] = [];
      for (const name of next.locations) {
        const data = await files.openBeside(name);
        if (!data) throw failure('source-invalid', name, `is missing; ${source.name} keeps weights in it`);
        external.push(data);
      }
      if (next.deflated.length === 0) return { external, inflated: [] };
      const { inflate } = await import('./inflate.js');
      const inflated: FileSource[] = [];
      for (const entry of next.deflated) inflated.push(await inflate(source, entry));
      return { external, inflated };
    }
    at = next.offset;
    const end = known.begin + known.bytes.byteLength;
    if (at < known.begin || at + next.bytes > end) {
      const length = Math.min(Math.max(next.bytes, leastBytes), source.size - at);
      known = { begin: at, bytes: await source.read(at, length) };
    }
  }
}
