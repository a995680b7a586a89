// Parses config.json like Python, including constants that JSON.parse rejects.

import type { Instance } from '../engine/instance.js';
import type { BoundModelIndex } from '../engine/module.js';

interface ConfigJson {
  config: Record<string, unknown>;
  /** Numbers that JSON cannot express, null in `config`. A path has names and indexes. */
  constants: { path: (string | number)[]; value: 'Infinity' | '-Infinity' | 'NaN' }[];
}

/** Errors: json-invalid with the byte offset. */
export function readConfig(instance: Instance, index: BoundModelIndex, text: string): Record<string, unknown> {
  const { config, constants } = instance.call<ConfigJson>(() => index.readConfig(text));
  for (const { path, value } of constants) {
    let place: Record<string | number, unknown> = config;
    for (const key of path.slice(0, -1)) place = place[key] as typeof place;
    place[path.at(-1) ?? ''] = Number(value);
  }
  return config;
}
