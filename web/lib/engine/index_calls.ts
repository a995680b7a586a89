// What the core's index is told while a model is opened, so that an index in another thread can be told the same.

import type { Instance } from './instance.js';
import type { BoundModelIndex } from './module.js';

type Plain = string | number;

/** A call of the index. `bytes`: the last argument, as the core takes it: an address and a length. */
export interface IndexCall {
  name:
    | 'stripPrefixes'
    | 'readShardMap'
    | 'addFile'
    | 'feed'
    | 'finish'
    | 'readConfig'
    | 'setSiblingFile'
    | 'setInlineBytes';
  args: Plain[];
  bytes?: Uint8Array;
}

/** The function's own result. */
export function tellIndex(instance: Instance, index: BoundModelIndex, { name, args, bytes }: IndexCall): unknown {
  const call = (...all: Plain[]) => (index[name] as (...all: Plain[]) => unknown)(...all);
  if (!bytes) return instance.run(() => call(...args));
  return instance.withBytes(bytes, (pointer) => instance.run(() => call(...args, pointer, bytes.byteLength)));
}

/** An index that has been told all of it; the caller frees it. */
export function toldIndex(instance: Instance, calls: readonly IndexCall[]): BoundModelIndex {
  const index = instance.run((module) => new module.ModelIndex());
  try {
    for (const call of calls) tellIndex(instance, index, call);
    return index;
  } catch (error) {
    instance.free(index);
    throw error;
  }
}
