// The JSON Schemas of the config dialects, loaded on first use of the config.
import { signal } from '@preact/signals';
import type { Schema } from '../editor/schema-walk';

/** By dialect; null until they are loaded. */
export const loadedSchemas = signal<Record<string, Schema> | null>(null);

export async function loadSchemas(): Promise<void> {
  loadedSchemas.value ??= (await import('./schemas')).schemas;
}

/** Empty for dialects without a schema. */
export function schemaOf(dialect: string): Schema {
  return loadedSchemas.value?.[dialect] ?? {};
}
