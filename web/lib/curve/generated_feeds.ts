// Feeds made up from the types, shapes and names of an ONNX model's inputs: values that are alike in the original and the quantized
// model, not ones that mean anything.

import type { OpenedModel } from '../model/model.js';
import type { ModelInput } from '../model/onnx_inputs.js';
import type { Feed, TensorClass } from '../model/onnx_session.js';

/** Random numbers that are the same everywhere: mulberry32. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** How feeds are made up. */
export interface FeedGuess {
  /** Size of dimensions that the model leaves open: of sequences and pictures. */
  open: number;
  /** Of pictures; default: `open`. */
  side?: number;
  /** Ids are of the largest or the smallest table that the model looks something up in. */
  ids: 'largest' | 'smallest';
}

/** To be tried in this order. */
export const feedGuesses: readonly FeedGuess[] = (['largest', 'smallest'] as const).flatMap((ids) =>
  [32, 224, 512, 1].map((open) => ({ open, ids })),
);

/** The same with pictures of a usual size: the time of smaller ones says little. */
export const timedGuess = (guess: FeedGuess): FeedGuess => ({ ...guess, side: Math.max(guess.open, 224) });

function dimsOf({ name, shape }: ModelInput, { open, side = open }: FeedGuess): number[] {
  return (shape ?? []).map((size, axis) => {
    if (typeof size === 'number') return size;
    const word = `${size ?? ''}`;
    if (/batch/i.test(word) || (axis === 0 && !/seq|len|time|frame|sample|height|width/i.test(word))) return 1;
    if (/chan/i.test(word) || (axis === 1 && shape?.length === 4)) return 3;
    if (/past/i.test(word) || /past/i.test(name)) return 0;
    if (/state|hidden|cell|^[hc]n?_?\d?$/i.test(name)) return 1;
    if (shape?.length === 4 && axis > 1) return side;
    return open;
  });
}

function vocabularyOf(model: OpenedModel, ids: FeedGuess['ids']): number {
  const rows = model.tensors
    .filter(({ layerType, shape }) => layerType === 'Embedding' && shape.length === 2)
    .map(({ shape }) => shape[0] ?? 0);
  if (rows.length === 0) return 2;
  return ids === 'largest' ? Math.max(...rows) : Math.min(...rows);
}

const usualRate = 16_000;

/** An integer input's values, as their name says. */
function integerOf(name: string, vocabulary: number, random: () => number, open: number): (i: number) => number {
  if (/mask/i.test(name)) return () => 1;
  if (/type|segment/i.test(name)) return () => 0;
  if (/position/i.test(name)) return (i) => i;
  if (/^sr$|rate/i.test(name)) return () => usualRate;
  if (/len/i.test(name)) return () => open;
  // The first ids of a vocabulary are often special.
  return () => Math.floor(random() * vocabulary);
}

/** Standard normal, by Box and Muller. */
const normal = (random: () => number) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Bits of a float16 near `value`, which is a normal number of that format. */
function halfBits(value: number): number {
  const [bits = 0] = new Uint32Array(Float32Array.of(value).buffer);
  const exponent = ((bits >>> 23) & 0xff) - 112;
  return exponent <= 0 ? 0 : ((bits >>> 16) & 0x8000) | (exponent << 10) | ((bits >>> 13) & 0x3ff);
}

type Maker = (count: number, real: () => number, integer: (i: number) => number) => ArrayBufferView;
const filled =
  (make: (length: { length: number }, each: (_: unknown, i: number) => number) => ArrayBufferView): Maker =>
  (length, _, integer) =>
    make({ length }, (_, i) => integer(i));
const bigs =
  (Type: typeof BigInt64Array | typeof BigUint64Array): Maker =>
  (length, _, integer) =>
    Type.from(Array.from({ length }, (_, i) => BigInt(integer(i))));

/** By the runtime's names of types. */
const makers: Record<string, Maker> = {
  float32: (length, real) => Float32Array.from({ length }, real),
  float64: (length, real) => Float64Array.from({ length }, real),
  float16: (length, real) => Uint16Array.from({ length }, () => halfBits(real())),
  int64: bigs(BigInt64Array),
  uint64: bigs(BigUint64Array),
  int32: filled((length, each) => Int32Array.from(length, each)),
  uint32: filled((length, each) => Uint32Array.from(length, each)),
  int16: filled((length, each) => Int16Array.from(length, each)),
  uint16: filled((length, each) => Uint16Array.from(length, each)),
  int8: filled((length, each) => Int8Array.from(length, each)),
  uint8: filled((length, each) => Uint8Array.from(length, each)),
  bool: (length) => new Uint8Array(length).fill(1),
};

/**
 * Feeds for every input without a default. Null if an input has a type that cannot be made up.
 */
export function generatedFeeds(
  Tensor: TensorClass,
  model: OpenedModel,
  inputs: readonly ModelInput[],
  count: number,
  guess: FeedGuess,
): Feed[] | null {
  const needed = inputs.filter(({ optional }) => !optional);
  if (needed.some(({ type }) => !makers[type])) return null;
  const { open, ids } = guess;
  const vocabulary = vocabularyOf(model, ids);
  return Array.from({ length: count }, (_, number) => {
    const random = generator(number + 1);
    return Object.fromEntries(
      needed.map((input) => {
        const dims = dimsOf(input, guess);
        const elements = dims.reduce((product, size) => product * size, 1);
        const integer = integerOf(input.name, vocabulary, random, open);
        const data = makers[input.type]?.(elements, () => normal(random), integer);
        return [input.name, new Tensor(input.type, data, dims)];
      }),
    );
  });
}
