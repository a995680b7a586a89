// What every run works with.

import type { Model, Source } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import type { MemoryPlan } from '../engine/memory.js';
import type { FileSource } from '../io/source.js';
import type { Pool, RunContext } from './pool.js';

/** What a run works with. */
export interface Workshop {
  instance: Instance;
  pool: Pool;
  memory: MemoryPlan;
  open(source: Source): Promise<Model>;
}

/** How the main thread reads for workers that cannot. */
export function reader(models: { weights: readonly FileSource[] }[]): RunContext['read'] {
  return async (input, file, offset, length) => {
    const source = models[input]?.weights[file];
    if (!source) throw new RangeError(`file ${file} of model ${input} does not exist`);
    return source.read(offset, length);
  };
}
