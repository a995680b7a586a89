// What callers give, read once: values of JavaScript as those of JSON, lists, dictionaries, bytes. They are recognised by what they are:
// `instanceof` is false for values of another realm (an iframe, jsdom, a vm context). What JSON.stringify drops or changes in silence (NaN,
// functions, the entries of a Map) is read where its meaning is plain, else refused at its place.

import { failure, QuantizationError, textOf } from './errors.js';

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** The name of an object's class in its own realm, such as `Blob`; `Object` for most. */
export function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value).slice(8, -1);
  } catch {
    return 'Object'; // a revoked Proxy
  }
}

/** Its getters tell what an array is, regardless of what a subclass says. */
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;

/** `Float32Array` and so on; undefined for what is no typed array. */
export const arrayName = (value: unknown): string | undefined => Reflect.get(typedArray, Symbol.toStringTag, value);

/** What a typed array holds: its class, elements and memory. Errors: argument-invalid if it is not of class `needed`, or lost its memory. */
export function arrayOf(value: unknown, where: string, needed = arrayName(value)) {
  const name = arrayName(value);
  if (name === undefined || name !== needed)
    throw failure('argument-invalid', where, `is ${shown(value)}; a ${needed ?? 'typed array'} is needed`);
  const own = (key: string) => Reflect.get(typedArray, key, value) as never;
  try {
    const bytes: Uint8Array<ArrayBuffer> = new Uint8Array(own('buffer'), own('byteOffset'), own('byteLength'));
    return { name, length: own('length') as number, bytes };
  } catch (error) {
    throw failure('argument-invalid', where, 'has no memory: its buffer was transferred; give a copy', error);
  }
}

/** The elements of a list, a Set or a typed array; null for what is none of them. */
export const listOf = (value: unknown): unknown[] | null =>
  Array.isArray(value) || arrayName(value) !== undefined || tagOf(value) === 'Set'
    ? Array.from(value as Iterable<unknown>)
    : null;

const isRoot = (prototype: object | null) => prototype === null || Object.hasOwn(prototype, 'isPrototypeOf');

/** Whether an object is of no class. */
export const isPlain = (value: object) => isRoot(Object.getPrototypeOf(value));

/** A value in an error message; of any type, also one that cannot become a string. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (Array.isArray(value)) return 'a list';
  const tag = tagOf(value);
  if (isObject(value)) return tag === 'Object' ? 'an object' : `${/^[AEIO]/.test(tag) ? 'an' : 'a'} ${tag}`;
  return typeof value === 'function' ? 'a function' : String(value);
}

/** Names of an object's fields: its own, and what its classes compute or share. Methods are none. */
function fieldsOf(value: object): Set<string> {
  const names = new Set(Object.keys(value));
  if (names.size === 0) return names;
  for (let from = Object.getPrototypeOf(value); !isRoot(from); from = Object.getPrototypeOf(from))
    for (const [name, { get, enumerable, value: held }] of Object.entries(Object.getOwnPropertyDescriptors(from)))
      if (get || (enumerable && typeof held !== 'function')) names.add(name);
  return names;
}

const symbolsOf = (value: object) =>
  Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));

/** As in src/core/json.h. */
const mostLevels = 64;

/**
 * A copy that JSON can express: a Map with text as keys is a dictionary, a Set and a typed array are lists, a field that is
 * undefined is left out. Errors: argument-invalid at the JSON pointer of what JSON cannot express, behind `prefix`, or at `name`.
 */
export function plainOf(value: unknown, name: string, prefix = name): unknown {
  const [keys, holders]: [string[], object[]] = [[], []];
  const refusal = (detail: string, cause?: unknown) => {
    const pointer = keys.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
    return failure('argument-invalid', pointer === '' ? name : prefix + pointer, detail, cause);
  };
  const inside = (key: string, held: unknown): unknown => {
    keys.push(key);
    const found = plain(held);
    keys.pop();
    return found;
  };
  const plain = (found: unknown): unknown => {
    if (isObject(found)) {
      if (holders.includes(found)) throw refusal('contains itself');
      if (holders.push(found) > mostLevels) throw refusal(`is nested deeper than ${mostLevels} levels`);
      const copy = contents(found);
      holders.pop();
      return copy;
    }
    if (found === null || typeof found === 'string' || typeof found === 'boolean' || Number.isFinite(found))
      return found;
    if (typeof found === 'bigint' && Number.isSafeInteger(Number(found))) return Number(found);
    const allowed = 'text, a finite number, true, false, null, a list or a dictionary';
    throw refusal(`is ${shown(found)}, which JSON cannot express; give ${allowed}`);
  };
  const contents = (given: object): unknown => {
    const tag = tagOf(given);
    if (/^(String|Number|Boolean)$/.test(tag)) return plain(given.valueOf());
    const toJson: unknown = tag === 'Date' || arrayName(given) ? null : Reflect.get(given, 'toJSON');
    if (typeof toJson === 'function') return plain(Reflect.apply(toJson, given, [keys.at(-1) ?? '']));
    const list = listOf(given);
    if (list) return list.map((each, i) => inside(String(i), each));
    if (tag === 'Map') return dictionary([...(given as Map<unknown, unknown>).entries()]);
    const names = [...fieldsOf(given), ...symbolsOf(given)];
    if (names.length === 0 && !isPlain(given))
      throw refusal(`is ${shown(given)}, which has no fields; give a dictionary`);
    return dictionary(names.map((key) => [key, Reflect.get(given, key)]));
  };
  const dictionary = (entries: readonly (readonly [unknown, unknown])[]): object =>
    Object.fromEntries(
      entries.flatMap(([key, held]) => {
        if (typeof key !== 'string') throw refusal(`has ${shown(key)} as a key; keys are text`);
        return held === undefined ? [] : [[key, inside(key, held)]];
      }),
    );
  try {
    return plain(value);
  } catch (error) {
    throw error instanceof QuantizationError ? error : refusal(`cannot be read: ${textOf(error)}`, error);
  }
}
