// The files of a model, from what hosts without a file system open. Loaded with the first model, not with the page.

import { loaded } from '../api/loaded.js';
import type { HubOptions, Source } from '../api/types.js';
import { directoryFolder, listFolder } from './folder.js';
import { filesOfFolder, filesOfList, filesOfSingle, type ModelFiles } from './model_files.js';
import { isAddress, isDirectoryHandle, openSource } from './source.js';

/** A model by `hf:` id or by URL. */
export async function openUrlModel(source: string | URL, hub: HubOptions): Promise<ModelFiles> {
  const { openAddress } = await loaded(import('./url_model.js'));
  return openAddress(source, hub);
}

export async function openModelFiles(source: Source | Source[], hub: HubOptions): Promise<ModelFiles> {
  if (Array.isArray(source)) return filesOfList(await listFolder(source, openSource));
  if (isDirectoryHandle(source)) return filesOfFolder(await directoryFolder(source));
  if (isAddress(source)) return openUrlModel(source, hub);
  return filesOfSingle(await openSource(source, 'model.safetensors'), null, null);
}
