/** Values of options: what is wrong with a text is a wrong use of the command line. */
import { InvalidArgumentError } from 'commander';
import type { OnnxOptions, ShardPart } from '../../lib/node.js';
import type { LayerChoice } from '../args.js';

/** The library's limit: more are a typo. */
const kMaxThreads = 256;

/** A count of workers, 0 = none. */
export function parseThreads(text: string): number {
  const threads = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(threads <= kMaxThreads)) throw new InvalidArgumentError(`It must be a whole number from 0 to ${kMaxThreads}.`);
  return threads;
}

const kFactors: Record<string, number> = {
  '': 1,
  b: 1, // bytes
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};

/** Bytes of `256M`, `1GiB`, `1.5G`, `500MB` or `268435456`: K, M, G and KiB, MiB, GiB are powers of 1024, kB, MB, GB of 1000. */
export function parseSize(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const factor = kFactors[unit.toLowerCase()];
  const bytes = number === '' || factor === undefined ? Number.NaN : Math.round(Number(number) * factor);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) {
    throw new InvalidArgumentError('It must be a size such as 256M, 1GiB, 500MB or a number of bytes.');
  }
  return bytes;
}

export function parseAccuracyLevel(text: string): NonNullable<OnnxOptions['accuracyLevel']> {
  const level = ([0, 1, 2, 3, 4] as const).find((value) => String(value) === text);
  if (level === undefined) throw new InvalidArgumentError('It must be a number from 0 to 4.');
  return level;
}

/** `I/N`: part I of N, counted from 1. */
export function parseShards(text: string): ShardPart {
  const [, part = '', of = ''] = /^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? [];
  if (of === '' || Number(part) < 1 || Number(part) > Number(of))
    throw new InvalidArgumentError('It must be PART/PARTS such as 1/8; parts count from 1: add 1 to an index from 0.');
  return { part: Number(part), of: Number(of) };
}

/** `GLOB=PRESET`, appended to earlier ones. Splits at the last `=`, so a glob may contain one. */
export function parseLayer(text: string, before: LayerChoice[] = []): LayerChoice[] {
  const equals = text.lastIndexOf('=');
  if (equals < 1 || equals + 1 === text.length) {
    throw new InvalidArgumentError(
      'It must be GLOB=PRESET, such as "*.down_proj=int8", or CLASS=PRESET, such as GRU=int8.',
    );
  }
  return [...before, { glob: text.slice(0, equals), preset: text.slice(equals + 1) }];
}

export function parsePattern(text: string, before: string[] = []): string[] {
  if (text === '') throw new InvalidArgumentError('It must be a layer name or a glob such as "*.down_proj".');
  return [...before, text];
}

export function parseCount(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError('It must be a whole number from 1.');
  return number;
}

export function parsePositive(text: string): number {
  const number = Number(text);
  if (!(number > 0 && Number.isFinite(number))) throw new InvalidArgumentError('It must be a number above 0.');
  return number;
}
