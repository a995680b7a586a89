// The files of a model, from what hosts without a file system open. Loaded with the first model, not with the page.

import { isObject, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { loaded } from '../api/loaded.js';
import type { HubOptions, Source, SourcePlace } from '../api/types.js';
import { directoryFolder, listFolder } from './folder.js';
import { filesOfFolder, filesOfList, filesOfSingle, type ModelFiles } from './model_files.js';
import { isAddress, isDirectoryHandle, openSource, urlOf } from './source.js';

/** A source that is no place. */
type PlainSource = Exclude<Source, SourcePlace>;

const placeNames = ['path', 'url', 'hub'] as const;

/**
 * Name and value of a place; null for objects that read bytes or are the host's, which may have such a name, too. Keys are listed only of
 * what may be one: arrays of bytes have a key for each.
 */
function placeIn(source: unknown): [name: string, value: unknown] | null {
  if (!isObject(source) || 'read' in source) return null;
  const name = placeNames.find((each) => Object.hasOwn(source, each));
  return name !== undefined && Object.keys(source).length === 1 ? [name, Reflect.get(source, name)] : null;
}

/**
 * What a place stands for, a URL or `hf:` and an id; other sources as they are. `urlOfPath`: of hosts with paths. Errors:
 * source-invalid.
 */
export function unplaced(source: Source, urlOfPath?: (path: string) => URL): PlainSource {
  const place = placeIn(source);
  if (!place) return source as PlainSource;
  const [name, value] = place;
  if (name === 'url' && isAddress(value)) return urlOf(value);
  if (typeof value !== 'string' || value === '')
    throw failure('source-invalid', `source.${name}`, `is ${shown(value)}; a string is needed`);
  if (name === 'hub') return `hf:${value}`;
  if (urlOfPath) return urlOfPath(value);
  throw failure('source-invalid', value, 'is a path, which is for Node; give a File, a handle or { url } here');
}

/** A model by `hf:` id or by URL. */
export async function openUrlModel(source: string | URL, hub: HubOptions): Promise<ModelFiles> {
  const { openAddress } = await loaded(import('./url_model.js'));
  return openAddress(source, hub);
}

export async function openModelFiles(given: Source | Source[], hub: HubOptions): Promise<ModelFiles> {
  if (Array.isArray(given))
    return filesOfList(
      await listFolder(
        given.map((each) => unplaced(each)),
        openSource,
      ),
    );
  const source = unplaced(given);
  if (isDirectoryHandle(source)) return filesOfFolder(await directoryFolder(source));
  if (isAddress(source)) return openUrlModel(source, hub);
  return filesOfSingle(await openSource(source, 'model.safetensors'), null, null);
}
