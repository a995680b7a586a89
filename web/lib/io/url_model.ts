// Models by address: a repository of the hub, an index file, or a weight file with what lies next to it.

import type { HubOptions } from '../api/types.js';
import { escaped, nameOfUrl } from './file_source.js';
import type { Folder } from './folder.js';
import { hubPlaceOf, openHubModel } from './hub.js';
import { filesOfIndex, filesOfSingle, isOnnxFolder, type ModelFiles } from './model_files.js';
import { isIndexName } from './part_name.js';
import { openSource, urlOf } from './source.js';
import { openUrl } from './url_source.js';

function urlAt(path: string, url: URL): URL {
  const found = new URL(path, url);
  found.search = url.search; // it may sign the request
  return found;
}

/** The folder of `url`. `reachable`: a URL of the same server that has answered. */
function urlFolder(url: URL, reachable = url): Folder {
  return {
    where: new URL('.', url).href,
    names: null,
    folders: null,
    open: async (name, mostBytes) => openUrl(urlAt(escaped(name), url), reachable, mostBytes),
    folder: async (name) => urlFolder(urlAt(`${escaped(name)}/`, url), reachable),
  };
}

/** The folder around that of `url`. */
function urlFolderAround(url: URL): Folder {
  return urlFolder(urlAt('../', url), url);
}

/** Whether `urlFolder` works for a URL. */
function hasNeighbours(url: URL): boolean {
  return (url.protocol === 'http:' || url.protocol === 'https:') && nameOfUrl(url) !== '';
}

/** Texts and addresses that may mean a model of the hub. */
const hubPattern = /^hf:|^https?:\/\//i;

/** A model by `hf:` id or by URL: a repository of the hub, an index file or a single weight file. */
export async function openAddress(source: string | URL, hub: HubOptions): Promise<ModelFiles> {
  if (hubPattern.test(String(source))) {
    const place = hubPlaceOf(source, hub);
    if (place) return openHubModel(place, hub);
  }
  const url = urlOf(source);
  const folder = hasNeighbours(url) ? urlFolder(url) : null;
  const name = nameOfUrl(url);
  if (folder && isIndexName(name)) return filesOfIndex(folder, name);
  const parent = url.pathname.split('/').at(-2) ?? '';
  const around = folder && isOnnxFolder(parent) ? urlFolderAround(url) : null;
  return filesOfSingle(await openSource(url, 'model.safetensors'), folder, around);
}
