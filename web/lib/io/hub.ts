// Repositories of the Hugging Face Hub as folders: listed once, at one commit, and read by ranges.

import { failure } from '../api/errors.js';
import type { HubOptions } from '../api/types.js';
import { escaped, type FileSource, unescaped } from './file_source.js';
import type { Folder } from './folder.js';
import { filesOfFolder, filesOfIndex, filesOfSingle, isOnnxFolder, type ModelFiles } from './model_files.js';
import { isIndexName } from './part_name.js';
import { urlOf } from './source.js';
import { openUrl } from './url_source.js';

const usualEndpoint = 'https://huggingface.co';

/** A repository at a revision, and a file or folder in it; path '' is the repository. */
export interface HubPlace {
  repository: string;
  revision: string;
  path: string;
}

const hosts = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
/** First segments of the hub's addresses that are no owners of models. */
const notOwners = ['api', 'datasets', 'spaces', 'docs', 'models', 'settings', 'blog', 'papers', 'collections', 'login'];
const namePattern = /^[\w.-]+$/;

const placeOf = (segments: string[], revision: string, path: string): HubPlace | null =>
  segments.length > 0 && segments.length <= 2 && segments.every((name) => namePattern.test(name))
    ? { repository: segments.join('/'), revision, path }
    : null;

/** `hf:org/model[@revision][/path]`; revisions with a slash are written with %2F. */
function placeOfId(id: string): HubPlace | null {
  const match = /^([^/@]+)(?:\/([^/@]+))?(?:@([^/]+))?(?:\/(.+))?$/.exec(id);
  if (!match) return null;
  const [, owner = '', name, revision = 'main', path = ''] = match;
  return placeOf(name === undefined ? [owner] : [owner, name], unescaped(revision), path);
}

/** Addresses of pages: /org/model, and below it tree, blob, resolve or raw, a revision, and a path. */
function placeOfAddress(url: URL): HubPlace | null {
  const segments = url.pathname.split('/').filter(Boolean).map(unescaped);
  if (segments.length === 0 || notOwners.includes(segments[0] ?? '')) return null;
  const verb = segments.findIndex((name, at) => at > 0 && /^(tree|blob|resolve|raw)$/.test(name));
  if (verb < 0) return placeOf(segments, 'main', '');
  const [revision, ...path] = segments.slice(verb + 1);
  return revision === undefined ? null : placeOf(segments.slice(0, verb), revision, path.join('/'));
}

/** Errors: argument-invalid. */
function originOf(endpoint: string): string {
  try {
    const { origin, protocol } = new URL(endpoint);
    if (/^https?:$/.test(protocol)) return origin;
  } catch {}
  throw failure('argument-invalid', 'hub.endpoint', `${endpoint} is not an address such as ${usualEndpoint}`);
}

/** The place that a text or an address means; null if it means none of the hub. */
export function hubPlaceOf(source: string | URL, { endpoint = usualEndpoint }: HubOptions): HubPlace | null {
  const text = String(source);
  const own = originOf(endpoint);
  if (text.startsWith('hf:')) {
    const place = placeOfId(text.slice(3));
    if (place) return place;
    throw failure('source-invalid', text, 'is not an id of the hub; the form is hf:org/model@revision/file');
  }
  if (!/^https?:/i.test(text)) return placeOfId(text);
  const url = urlOf(text);
  return hosts.includes(url.hostname) || url.origin === own ? placeOfAddress(url) : null;
}

interface Listing {
  commit: string;
  /** By path; null where the hub does not tell. */
  sizes: Map<string, number | null>;
}

const shownPlace = ({ repository, revision }: HubPlace) =>
  `hf:${repository}${revision === 'main' ? '' : `@${escaped(revision)}`}`;

const headersOf = ({ token }: HubOptions): Record<string, string> =>
  token === undefined ? {} : { Authorization: `Bearer ${token}` };

function refusal(status: number, place: HubPlace, { token, endpoint = usualEndpoint }: HubOptions): string {
  const page = `${endpoint}/${place.repository}`;
  if (status === 401)
    return token === undefined
      ? `the hub asks for a token (401): the model is private, gated, or does not exist. Check ${page}, and give the token of an account that may read it (hub.token, HF_TOKEN)`
      : `the hub refuses the token (401): it is wrong or has expired, or ${page} does not exist`;
  if (status === 403)
    return `access is not granted (403): accept the terms of the model on ${page}, with the account of the token`;
  if (status === 404) return `there is no such model or revision (404): check ${page}`;
  if (status === 429) return 'the hub accepts no more requests for now (429): wait a few minutes, or give a token';
  return `the hub answered ${status}`;
}

async function listingOf(place: HubPlace, hub: HubOptions): Promise<Listing> {
  const { endpoint = usualEndpoint } = hub;
  const where = shownPlace(place);
  const url = `${endpoint}/api/models/${place.repository}/revision/${escaped(place.revision)}?blobs=true`;
  let response: Response;
  let listed: unknown;
  try {
    response = await fetch(url, { headers: headersOf(hub) });
    listed = response.ok ? await response.json() : null;
  } catch (error) {
    throw failure(
      'source-invalid',
      where,
      `the hub cannot be reached at ${url}, or its answer is not JSON; check the network, or download the model with hf download and open its folder`,
      error,
    );
  }
  if (!response.ok) throw failure('source-invalid', where, refusal(response.status, place, hub));
  const { sha, siblings } = (listed ?? {}) as { sha?: unknown; siblings?: unknown };
  if (typeof sha !== 'string' || !/^[0-9a-f]{40}$/.test(sha) || !Array.isArray(siblings))
    throw failure('source-invalid', where, `the answer of ${url} has no commit and list of files`);
  const sizes = new Map<string, number | null>();
  for (const { rfilename, size } of siblings as { rfilename?: unknown; size?: unknown }[])
    if (typeof rfilename === 'string' && !rfilename.split('/').includes('..'))
      sizes.set(rfilename, typeof size === 'number' ? size : null);
  return { commit: sha, sizes };
}

/** A folder of the listed files; `path`: '' or ending in a slash. */
function folderOf(place: HubPlace, { commit, sizes }: Listing, hub: HubOptions, path: string): Folder {
  const { endpoint = usualEndpoint } = hub;
  const where = `${shownPlace(place)}${path && `/${path.slice(0, -1)}`}`;
  const inside = [...sizes.keys()].filter((name) => name.startsWith(path)).map((name) => name.slice(path.length));
  const open = async (name: string, mostBytes?: number): Promise<FileSource | null> => {
    const size = sizes.get(path + name);
    if (size === undefined) return null;
    const encoded = `${path}${name}`.split('/').map(escaped).join('/');
    const url = new URL(`${endpoint}/${place.repository}/resolve/${commit}/${encoded}`);
    const file = await openUrl(url, null, mostBytes, headersOf(hub), (status) => refusal(status, place, hub));
    if (file && size !== null && file.size !== size)
      throw failure(
        'source-invalid',
        `${where}/${name}`,
        `the hub lists ${size} bytes, and its server has ${file.size}`,
      );
    return file;
  };
  return {
    where,
    names: inside.filter((name) => !name.includes('/')).sort(),
    folders: [...new Set(inside.filter((name) => name.includes('/')).map((name) => name.slice(0, name.indexOf('/'))))],
    open,
    folder: async (name) =>
      inside.some((inner) => inner.startsWith(`${name}/`))
        ? folderOf(place, { commit, sizes }, hub, `${path}${name}/`)
        : null,
  };
}

/** Opens a model of the hub: a repository, a folder in it, or one of its files with what belongs to it. Errors: source-invalid. */
export async function openHubModel(place: HubPlace, hub: HubOptions): Promise<ModelFiles> {
  const listing = await listingOf(place, hub);
  const path = place.path.replace(/\/+$/, '');
  if (path === '') return filesOfFolder(folderOf(place, listing, hub, ''));
  if (!listing.sizes.has(path)) {
    const isFolder = [...listing.sizes.keys()].some((name) => name.startsWith(`${path}/`));
    if (isFolder) return filesOfFolder(folderOf(place, listing, hub, `${path}/`));
    const weights = [...listing.sizes.keys()].filter((name) => /\.(safetensors|gguf|onnx)$/i.test(name));
    const found = weights.length > 0 ? `; it has ${weights.slice(0, 8).join(', ')}` : '';
    throw failure('source-invalid', `${shownPlace(place)}/${path}`, `is not in the repository${found}`);
  }
  const slash = path.lastIndexOf('/') + 1;
  const [before, name] = [path.slice(0, slash), path.slice(slash)];
  const folder = folderOf(place, listing, hub, before);
  if (isIndexName(name)) return filesOfIndex(folder, name);
  const parents = before.split('/').slice(0, -1);
  const isInOnnx = isOnnxFolder(parents.at(-1) ?? '');
  const around = parents.slice(0, -1).map((part) => `${part}/`);
  const file = await folder.open(name);
  if (!file) throw failure('source-invalid', path, 'is not in the repository');
  return filesOfSingle(file, folder, isInOnnx ? folderOf(place, listing, hub, around.join('')) : null);
}
