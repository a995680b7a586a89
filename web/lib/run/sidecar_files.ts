// The files next to the weights of a folder output: index, config.json, and files copied from the model.

import type { Diagnostic } from '../api/types.js';
import type { FileSource } from '../io/file_source.js';
import { indexNamesOf } from '../io/part_name.js';
import type { OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import type { PackedPlan } from '../plan/packed_plan.js';

const copyBytes = 8 * 1024 * 1024;

export interface SmallFile {
  name: string;
  bytes: number;
  content(): Promise<Uint8Array>;
  writeTo(target: OutputTarget): Promise<void>;
}

function smallFile(name: string, bytes: number, chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>>): SmallFile {
  return {
    name,
    bytes,
    async content() {
      const whole = new Uint8Array(bytes);
      let offset = 0;
      for await (const chunk of chunks()) {
        whole.set(chunk, offset);
        offset += chunk.byteLength;
      }
      return whole;
    },
    async writeTo(target) {
      const output = await target.create(this.name, bytes); // shard_range.ts puts a copy of this object elsewhere
      let offset = 0;
      for await (const chunk of chunks()) {
        await output.write(chunk, offset);
        offset += chunk.byteLength;
      }
      await output.finish();
    },
  };
}

export function textFile(name: string, text: string): SmallFile {
  const bytes = new TextEncoder().encode(text);
  async function* chunks() {
    yield bytes;
  }
  return smallFile(name, bytes.byteLength, chunks);
}

function carriedFile(source: FileSource): SmallFile {
  async function* chunks() {
    try {
      for (let at = 0; at < source.size; at += copyBytes) {
        yield (await source.read(at, Math.min(copyBytes, source.size - at))).slice();
      }
    } finally {
      await source.close();
    }
  }
  return smallFile(source.name, source.size, chunks);
}

/** In writing order; config.json is last, because it completes the model. */
export async function sidecarFiles(
  model: OpenedModel,
  { plan, shardMap, outputConfig }: PackedPlan,
): Promise<{ small: SmallFile[]; notes: Diagnostic[] }> {
  const { files, leftBehind } = await model.companions();
  const small = files.map(carriedFile);
  if (shardMap !== '') small.push(textFile(indexNamesOf(plan.files[0]?.name ?? '')[0] as string, shardMap));
  if (outputConfig !== '') small.push(textFile('config.json', outputConfig));
  const written = new Set([...plan.files, ...small].map(({ name }) => name));
  const missing = leftBehind.filter((path) => !written.has(path));
  return { small, notes: missing.length > 0 ? [leftBehindNote(missing)] : [] };
}

const mostShown = 100;

function leftBehindNote(paths: readonly string[]): Diagnostic {
  const more = paths.length > mostShown ? `, and ${paths.length - mostShown} more` : '';
  return {
    severity: 'note',
    code: 'files-left',
    where: paths[0] ?? '',
    message: `the output lacks these files and folders of the model's folder: ${paths.slice(0, mostShown).join(', ')}${more}`,
    hint: 'copy those that your program reads',
  };
}
