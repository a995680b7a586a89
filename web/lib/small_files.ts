// The files beside the weights of a folder output: index, config.json, and what is carried over from the model.

import { configJson, indexName } from './config_json.js';
import type { OpenedModel } from './model.js';
import type { PreparedRun } from './plan.js';
import type { FileSource } from './source.js';
import type { OutputTarget } from './target.js';

/** Bytes of one read when a file is carried over. */
const copyBytes = 8 * 1024 * 1024;

export interface SmallFile {
  name: string;
  bytes: number;
  chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>>;
}

function textFile(name: string, text: string): SmallFile {
  const bytes = new TextEncoder().encode(text);
  return {
    name,
    bytes: bytes.byteLength,
    async *chunks() {
      yield bytes;
    },
  };
}

function carriedFile(source: FileSource): SmallFile {
  return {
    name: source.name,
    bytes: source.size,
    async *chunks() {
      try {
        for (let at = 0; at < source.size; at += copyBytes) {
          yield (await source.read(at, Math.min(copyBytes, source.size - at))).slice();
        }
      } finally {
        await source.close();
      }
    },
  };
}

/** In the order they are written. config.json is last: with it, the folder is a model. */
export async function smallFiles(model: OpenedModel, { plan, shardMap }: PreparedRun): Promise<SmallFile[]> {
  const files = (await model.companions()).map(carriedFile);
  if (shardMap !== '') files.push(textFile(indexName(plan.files[0]?.name ?? ''), shardMap));
  const config = configJson(model.configText, model.config, plan.quantizationConfig);
  if (config !== null) files.push(textFile('config.json', config));
  return files;
}

/** Writes one of them whole. */
export async function writeSmallFile(target: OutputTarget, file: SmallFile): Promise<void> {
  const output = await target.create(file.name, file.bytes);
  let offset = 0;
  for await (const chunk of file.chunks()) {
    await output.write(chunk, offset);
    offset += chunk.byteLength;
  }
  await output.finish();
}
