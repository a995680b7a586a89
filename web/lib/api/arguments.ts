// Checks of what callers give: each wrong argument is argument-invalid, and says what was found and what is needed.

import { failure } from './errors.js';
import { arrayName, arrayOf, isObject, isPlain, listOf, plainOf, shown, tagOf } from './values.js';

export { isObject, shown } from './values.js';

/** What is needed, in words, and whether a value is that. */
const kinds = {
  any: ['', () => true],
  boolean: ['true or false', (value: unknown) => typeof value === 'boolean'],
  string: ['a string', (value: unknown) => typeof value === 'string'],
  strings: ['a list of strings', (value: unknown) => listOf(value)?.every((item) => typeof item === 'string') ?? false],
  url: ['a URL', (value: unknown) => typeof value === 'string' || tagOf(value) === 'URL'],
  list: ['a list', Array.isArray],
  object: ['an object', (value: unknown) => isObject(value) && !Array.isArray(value)],
  function: ['a function', (value: unknown) => typeof value === 'function'],
  bytes: ['a Uint8Array', (value: unknown) => arrayName(value) === 'Uint8Array'],
  count: ['a whole number from 1', (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1],
  number: ['a number', (value: unknown) => typeof value === 'number' && !Number.isNaN(value)],
  signal: ['an AbortSignal', (value: unknown) => isObject(value) && 'aborted' in value && 'addEventListener' in value],
} as const satisfies Record<string, readonly [string, (value: unknown) => boolean]>;

type Name = keyof typeof kinds;
/** A kind by name, the allowed values, or the options of an object. */
export type Kind = Name | readonly unknown[] | { readonly [option: string]: Kind };

/** The kind of each option in `Options`. */
export type Kinds<Options> = { readonly [Key in keyof Required<Options>]: Kind };

/** Number of characters to insert, delete or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; ++j)
      next.push(Math.min((row[j] ?? 0) + (letter === b[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    row = next;
  }
  return row[b.length] ?? 0;
}

function checkKnown(given: object, known: readonly string[], where: string): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const [closest] = [...known].sort((a, b) => distance(a, unknown) - distance(b, unknown));
  const isClose = closest !== undefined && distance(closest, unknown) <= Math.max(2, unknown.length / 3);
  const advice = isClose ? `did you mean ${closest}?` : `there are ${known.join(', ')}`;
  throw failure('argument-invalid', where, `has no option ${shown(unknown)}; ${advice}`);
}

const isAllowedList = (kind: Kind): kind is readonly unknown[] => Array.isArray(kind);

/** Options, each read once. */
function checkedOptions(given: object, options: { readonly [option: string]: Kind }, where: string): object {
  const found = Object.entries(options).flatMap(([key, kind]) => {
    const option: unknown = Reflect.get(given, key);
    return option === undefined ? [] : [[key, check(option, kind, where === 'options' ? key : `${where}.${key}`)]];
  });
  checkKnown(given, Object.keys(options), where);
  if (found.length === 0 && !isPlain(given))
    throw failure(
      'argument-invalid',
      where,
      `is ${shown(given)}; an object with ${Object.keys(options)[0]}... is needed`,
    );
  return Object.fromEntries(found);
}

/** The value; options, lists of strings and bytes as copies of what was checked. Errors: argument-invalid at `where`. */
export const check = <T>(value: T, kind: Kind, where: string): T =>
  reading(where, () => checked(value, kind, where)) as T;

function checked(value: unknown, kind: Kind, where: string): unknown {
  if (typeof kind === 'string') {
    const [needed, isRight] = kinds[kind];
    if (!isRight(value)) throw failure('argument-invalid', where, `is ${shown(value)}; ${needed} is needed`);
    if (kind === 'strings') return listOf(value);
    return kind === 'bytes' ? arrayOf(value, where).bytes : value;
  }
  if (!isAllowedList(kind)) return checkedOptions(checked(value, 'object', where) as object, kind, where);
  if (kind.includes(value)) return value;
  throw failure('argument-invalid', where, `is ${shown(value)}; it is one of ${kind.join(', ')}`);
}

/** Calls `use`, which reads `where` as its type says. Errors: argument-invalid if it is something else. */
export function reading<T>(where: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof TypeError)
      throw failure('argument-invalid', where, `is not of its type: ${error.message}`, error);
    throw error;
  }
}

/** Options with the signal of the run that they are for. */
export const checkedWith = <T extends object>(
  options: T,
  kinds: Kinds<T>,
  signal: AbortSignal | undefined,
): T & { signal?: AbortSignal } => ({ ...check(options, kinds, 'options'), ...(signal && { signal }) });

/** The JSON text of `plainOf`. */
export const jsonText = (value: unknown, name: string, prefix?: string) => JSON.stringify(plainOf(value, name, prefix));
