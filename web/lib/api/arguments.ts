// Checks of what callers give: each wrong argument is argument-invalid, and says what was found and what is needed.

import { failure, textOf } from './errors.js';

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isStringList = (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string');

/** What is needed, in words, and whether a value is that. */
const kinds = {
  any: ['', () => true],
  boolean: ['true or false', (value: unknown) => typeof value === 'boolean'],
  string: ['a string', (value: unknown) => typeof value === 'string'],
  strings: ['a list of strings', isStringList],
  url: ['a URL', (value: unknown) => typeof value === 'string' || value instanceof URL],
  list: ['a list', Array.isArray],
  object: ['an object', (value: unknown) => isObject(value) && !Array.isArray(value)],
  function: ['a function', (value: unknown) => typeof value === 'function'],
  bytes: ['a Uint8Array', (value: unknown) => value instanceof Uint8Array],
  count: ['a whole number from 1', (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1],
  number: ['a number', (value: unknown) => typeof value === 'number'],
  signal: ['an AbortSignal', (value: unknown) => isObject(value) && 'aborted' in value && 'addEventListener' in value],
} as const satisfies Record<string, readonly [string, (value: unknown) => boolean]>;

type Name = keyof typeof kinds;
/** A kind by name, the allowed values, or the options of an object. */
export type Kind = Name | readonly unknown[] | { readonly [option: string]: Kind };

/** The kind of each option in `Options`. */
export type Kinds<Options> = { readonly [Key in keyof Required<Options>]: Kind };

/** A value in an error message; of any type, also one that cannot become a string. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}

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

/** Errors: argument-invalid at `where`. */
export function check(value: unknown, kind: Kind, where: string): void {
  if (typeof kind === 'string') {
    const [needed, isRight] = kinds[kind];
    if (!isRight(value)) throw failure('argument-invalid', where, `is ${shown(value)}; ${needed} is needed`);
  } else if (Array.isArray(kind)) {
    if (!kind.includes(value))
      throw failure('argument-invalid', where, `is ${shown(value)}; it is one of ${kind.join(', ')}`);
  } else {
    check(value, 'object', where);
    const given = value as Record<string, unknown>;
    for (const [key, each] of Object.entries(kind))
      if (given[key] !== undefined) check(given[key], each as Kind, where === 'options' ? key : `${where}.${key}`);
    checkKnown(given, Object.keys(kind), where);
  }
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

/** JSON text. Errors: argument-invalid, for what JSON cannot express. */
export function jsonText(value: unknown, where: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw failure('argument-invalid', where, `cannot be written as JSON: ${textOf(error)}`, error);
  }
  if (text === undefined) throw failure('argument-invalid', where, `is ${shown(value)}, which JSON cannot express`);
  return text;
}
