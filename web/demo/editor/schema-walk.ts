// The parts of JSON Schema that completion needs: allowed keys of an object, and allowed values of a place.

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  type?: string | string[];
  enum?: unknown[];
  /** TypeScript gives objects in arrays of imported JSON the properties of all of them, undefined where they lack one. */
  properties?: Record<string, Schema | undefined>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  deprecated?: boolean;
}

/** Any element of an array in a path. */
export const anyItem = Symbol('item');
export type Path = (string | typeof anyItem)[];

/** Resolves references and alternatives: all schemas that may apply. */
function alternatives(root: Schema, schema: Schema | undefined): Schema[] {
  if (!schema) return [];
  if (schema.$ref) return alternatives(root, root.$defs?.[schema.$ref.replace('#/$defs/', '')]);
  return schema.anyOf ? schema.anyOf.flatMap((one) => alternatives(root, one)) : [schema];
}

function step(root: Schema, schema: Schema, key: Path[number]): Schema[] {
  if (key === anyItem) return alternatives(root, schema.items);
  const { properties, additionalProperties } = schema;
  const own = properties && Object.hasOwn(properties, key) ? properties[key] : undefined;
  return alternatives(root, own ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined));
}

/** The schemas that apply at a path. */
export function schemasAt(root: Schema, path: Path): Schema[] {
  return path.reduce<Schema[]>(
    (found, key) => found.flatMap((schema) => step(root, schema, key)),
    alternatives(root, root),
  );
}

export function keysAt(root: Schema, path: Path): string[] {
  const keys = schemasAt(root, path).flatMap(({ properties = {} }) =>
    Object.entries(properties).flatMap(([key, schema]) => (schema?.deprecated ? [] : [key])),
  );
  return [...new Set(keys)];
}

/** Values as JSON text. */
export function valuesAt(root: Schema, path: Path): string[] {
  const values = schemasAt(root, path).flatMap((schema) => {
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value));
    const types = [schema.type ?? []].flat();
    return types.flatMap((type) => (type === 'boolean' ? ['true', 'false'] : type === 'null' ? ['null'] : []));
  });
  return [...new Set(values)];
}
