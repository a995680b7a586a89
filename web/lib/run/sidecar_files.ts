// The files next to the weights of a folder output: index, config.json, and files copied from the model.

import type { FileSource } from '../io/file_source.js';
import type { OutputTarget } from '../io/target.js';
import type { OpenedModel } from '../model/model.js';
import type { PackedPlan } from '../plan/packed_plan.js';

const copyBytes = 8 * 1024 * 1024;

export interface SmallFile {
  name: string;
  bytes: number;
  writeTo(target: OutputTarget): Promise<void>;
}

function smallFile(name: string, bytes: number, chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>>): SmallFile {
  return {
    name,
    bytes,
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

/** Name of a shard index: `model-00001-of-00002.safetensors` gives `model.safetensors.index.json`. */
function indexName(firstShard: string): string {
  const stem = /^(.*?)(-\d{5}-of-\d{5})?\.safetensors$/.exec(firstShard)?.[1] ?? 'model';
  return `${stem}.safetensors.index.json`;
}

/** In writing order; config.json is last, because it completes the model. */
export async function sidecarFiles(
  model: OpenedModel,
  { plan, shardMap, outputConfig }: PackedPlan,
): Promise<SmallFile[]> {
  const files = (await model.siblingFiles()).map(carriedFile);
  if (shardMap !== '') files.push(textFile(indexName(plan.files[0]?.name ?? ''), shardMap));
  if (outputConfig !== '') files.push(textFile('config.json', outputConfig));
  return files;
}
