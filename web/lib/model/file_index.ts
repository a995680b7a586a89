// Reads a file's headers, never its values: the core requests bytes, and this file fetches them.

import { failure } from '../api/errors.js';
import { loaded } from '../api/loaded.js';
import { type IndexCall, tellIndex } from '../engine/index_calls.js';
import type { Instance } from '../engine/instance.js';
import type { BoundModelIndex } from '../engine/module.js';
import type { FileSource } from '../io/file_source.js';
import type { ModelFiles } from '../io/model_files.js';
import type { DeflatedEntry } from './inflate.js';

/** First read of each file, in bytes: enough for most headers. */
const firstReadBytes = 256 * 1024;
/** Smallest read in bytes: what follows is often needed too, and requests are costly. */
const leastBytes = 64 * 1024;

interface Answer {
  offset: number;
  bytes: number;
  /** When `bytes` is 0: companion data files, and compressed files inside it. */
  dataFiles?: string[];
  deflated?: DeflatedEntry[];
}

interface Known {
  begin: number;
  bytes: Uint8Array;
}

/** The requested bytes; if a known prefix grows, only the rest is read. */
async function fetched(source: FileSource, known: Known, { offset, bytes }: Answer): Promise<Known> {
  const end = known.begin + known.bytes.byteLength;
  if (offset >= known.begin && offset + bytes <= end) return known;
  if (offset + bytes > source.size)
    throw failure(
      'file-truncated',
      source.name,
      `its header needs ${offset + bytes} bytes, but the file has ${source.size}`,
    );
  const length = Math.min(Math.max(bytes, leastBytes), source.size - offset);
  if (offset !== known.begin) return { begin: offset, bytes: await source.read(offset, length) };
  const longer = new Uint8Array(length);
  longer.set(known.bytes);
  longer.set(await source.read(end, length - known.bytes.byteLength), known.bytes.byteLength);
  return { begin: offset, bytes: longer };
}

interface ExtraSources {
  data: FileSource[];
  inflated: FileSource[];
}

async function filesOf(source: FileSource, { dataFiles, deflated }: Answer, files: ModelFiles): Promise<ExtraSources> {
  const extra: ExtraSources = { data: [], inflated: [] };
  for (const name of dataFiles ?? []) {
    const data = await files.openSibling(name);
    if (!data)
      throw failure(
        'source-invalid',
        name,
        `is missing; ${source.name} keeps weights in it. Give the folder, the path or URL of the model next to it, or a list with both`,
      );
    if (extra.data.includes(data))
      throw failure('source-invalid', name, `${data.name} is one file of a list and stands for two; give the folder`);
    extra.data.push(data);
  }
  if (!deflated || deflated.length === 0) return extra;
  const { inflate } = await loaded(import('./inflate.js')); // few pages need it
  for (const entry of deflated) extra.inflated.push(await inflate(source, entry));
  return extra;
}

/** Feeds a file to the index, and adds to `calls` what has told it something. Errors: the core's, file-truncated, source-invalid, read-failed. */
export async function readIndex(
  instance: Instance,
  index: BoundModelIndex,
  calls: IndexCall[],
  file: number,
  source: FileSource,
  files: ModelFiles,
): Promise<ExtraSources> {
  let known: Known = { begin: 0, bytes: await source.read(0, Math.min(source.size, firstReadBytes)) };
  for (let at = 0; ; ) {
    const rest = known.bytes.subarray(at - known.begin);
    let next: Answer;
    try {
      const call: IndexCall = { name: 'feed', args: [file], bytes: rest };
      next = instance.call<Answer>(() => tellIndex(instance, index, call) as string);
      if (next.bytes === 0 || next.offset !== at) calls.push({ ...call, bytes: rest.slice() });
      if (next.bytes > 0) known = await fetched(source, known, next);
    } catch (error) {
      const { foreignFailure } = await loaded(import('../io/foreign_file.js'));
      throw await foreignFailure(source, error);
    }
    if (next.bytes === 0) return filesOf(source, next, files);
    at = next.offset;
  }
}
