/** Models that are read and planned in no time, from what is known of their files before they are opened. */
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Asked } from '../asked.js';

/** Of all files of a model. */
const kMostBytes = 32 * 2 ** 20;
/** Of a file's header, or of a config: a thousand layers and a thousand patterns are matched within a second. */
const kMostHeaderBytes = 2 ** 17;
const kMostFiles = 100;
/** Of work before workers start: no more than what it takes to start two and to end them. */
const kWorkersAfterMs = 100;

/** What reads more than the model, or computes with it. */
const kLong = [
  'text',
  'calibration',
  'calibrationText',
  'source',
  'best',
  'imatrix',
  'outputs',
  'feeds',
  'measureSpeed',
];
/** Commands, with the number of models that they read. */
const kModels: Partial<Record<Asked['name'], number>> = { inspect: 1, plan: 1, formats: 1, quantize: 1, compare: 2 };

/** Of a safetensors file: its first eight bytes. Other headers do not tell. */
function headerBytes(path: string): number {
  const start = Buffer.alloc(8);
  const file = openSync(path, 'r');
  try {
    readSync(file, start, 0, 8, 0);
  } finally {
    closeSync(file);
  }
  return Number(start.readBigUInt64LE());
}

function isSmallModel(path: string | undefined): boolean {
  const found = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
  if (path === undefined || !found) return false;
  const names = found.isDirectory() ? readdirSync(path) : [''];
  if (names.length > kMostFiles) return false;
  const files = names
    .map((name) => join(path, name))
    .map((file) => ({ file, status: statSync(file) }))
    .filter(({ status }) => !status.isDirectory());
  const bytes = files.reduce((sum, { status }) => sum + status.size, 0);
  const weights = files.filter(({ file }) => !/\.(json|txt|md|jinja|py|model)$/.test(file));
  return (
    bytes <= kMostBytes &&
    files.every(({ status }) => status.isFile()) &&
    weights.every(({ file }) => file.endsWith('.safetensors')) &&
    weights.reduce((sum, { file }) => sum + headerBytes(file), 0) <= kMostHeaderBytes
  );
}

const isShortConfig = (path: unknown) =>
  path === undefined || (typeof path === 'string' && path !== '-' && statSync(path).size <= kMostHeaderBytes);

/** Options for a run of which no step takes longer than a signal may wait; null if one may. */
export function optionsOfSmall({ name, given, options }: Asked): object | null {
  const { threads, config, ...others } = options as { threads?: number; config?: string };
  const isLong = (threads ?? 0) > 0 || kLong.some((option) => option in others);
  try {
    const models = given.slice(0, kModels[name] ?? 0);
    if (models.length === 0 || isLong || !isShortConfig(config) || !models.every(isSmallModel)) return null;
  } catch {
    return null; // a file that cannot be read, of which the command tells
  }
  return { ...options, workersAfterMs: kWorkersAfterMs };
}
