// The JSON Schemas of the config dialects, once the config is looked at.
import { signal } from '@preact/signals';
import type { Schema } from '../editor/schema-walk';

/** By dialect; null until they are loaded. */
export const loadedSchemas = signal<Record<string, Schema> | null>(null);

export async function loadSchemas(): Promise<void> {
  loadedSchemas.value ??= (await import('./schemas')).schemas;
}

/** Of other dialects nothing is known. */
export function schemaOf(dialect: string): Schema {
  return loadedSchemas.value?.[dialect] ?? {};
}
