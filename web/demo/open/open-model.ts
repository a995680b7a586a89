// Opens a model from files, however they arrived.

import { batch } from '@preact/signals';
import { weightFilePattern } from 'wasmquant/internal';
import { quantizer } from '../app/engine';
import { explain } from '../app/failure';
import { choice } from '../configure/choice';
import { endPlans, plansFrom } from '../configure/planner';
import { firstFor, lookAhead } from '../configure/reach';
import { endJob } from '../quality/job';
import { run } from '../run/runs';
import { extensionsText } from './accepted-files';
import { linkedChoice } from './deep-link';
import { chosenFolder, type FoundFiles } from './dropped-files';
import { asksForToken, hubOptions, inWordsOfPage, isRefused } from './hub-token';
import { opened, openFailure, opening } from './opened';

const sample = { title: 'tiny-llama (sample)', location: 'tiny-llama', isSample: true as const };

function titleOf(weights: File[]): string {
  return weights.length === 1 && weights[0] ? weights[0].name : `${weights.length} shards`;
}

/** A single file's name; for several files the page does not know the folder. */
function locationOf(weights: File[]): string {
  return weights.length === 1 && weights[0] ? weights[0].name : 'my-model';
}

interface FoundModel {
  source: File[] | URL | string;
  title: string;
  location: string;
  isRemote?: true;
  isSample?: true;
}

/** Opens what `find` returns; null: nothing was given. */
async function load(what: string, find: () => Promise<FoundModel | null>): Promise<void> {
  if (!quantizer.value || opening.value || run.value.state === 'running') return;
  opening.value = what;
  openFailure.value = null;
  asksForToken.value = false;
  try {
    const given = await find();
    if (!given) return;
    await endJob(); // of the model that is left
    const { source, ...names } = given;
    const hub = hubOptions();
    const model = await quantizer.value.open(source, { hub });
    plansFrom(model, source, hub);
    const first = linkedChoice(model) ?? (await firstFor(model, Array.isArray(source) ? model.files.length : 1));
    const former = opened.value;
    batch(() => {
      opened.value = { model, ...names };
      choice.value = first;
    });
    lookAhead(model); // after what waited for the former model is forgotten
    if (former) endPlans(former.model);
    await former?.model.close();
  } catch (error) {
    asksForToken.value = isRefused(error);
    openFailure.value = inWordsOfPage(explain(error, `${what} could not be opened`));
  } finally {
    opening.value = null;
  }
}

function ofFiles(files: File[], folder: string | null = null): FoundModel | null {
  if (files.length === 0) return null;
  const weights = files.filter((file) => weightFilePattern.test(file.name));
  const named = weights.length > 0 ? weights : files;
  return { source: files, title: folder ?? titleOf(named), location: folder ?? locationOf(named) };
}

/** An id of the hub or a page of it, or the URL of a file. */
function addressOf(text: string): URL | string {
  if (/^hf:/.test(text)) return text;
  // A name that ends in letters behind a dot is that of a file.
  if (/^[\w.-]+\/[\w.-]+$/.test(text) && !/\.[a-z]{2,}$/i.test(text)) return `hf:${text}`;
  let url: URL;
  try {
    url = new URL(text, document.baseURI);
  } catch {
    throw new Error(`“${text}” is not a URL. Enter one that ends in ${extensionsText}.`);
  }
  if (/^(www\.)?(huggingface\.co|hf\.co)$/.test(url.hostname)) return url;
  if (!weightFilePattern.test(url.pathname.replace(/\.index\.json$/i, '')))
    throw new Error(
      `${url.href} is not a model file; the URL must end in ${extensionsText}, or in .index.json for shards.`,
    );
  return url;
}

export function openUrl(text: string): Promise<void> {
  return load('The address', async () => {
    const source = addressOf(text);
    const location = String(source);
    const title = decodeURIComponent(
      location
        .replace(/[?#].*$/, '')
        .split('/')
        .at(-1) ?? '',
    );
    return { source, title, location, isRemote: true };
  });
}

export function openFiles(files: File[]): Promise<void> {
  const first = files[0];
  return load(files.length === 1 && first ? first.name : `${files.length} files`, async () => ofFiles(files));
}

export function openFolder(list: File[]): Promise<void> {
  const { files, folder } = chosenFolder(list);
  return load(folder ?? 'The folder', async () => ofFiles(files, folder));
}

export function openDrop(found: Promise<FoundFiles>): Promise<void> {
  return load('The drop', async () => {
    const { files, folder } = await found;
    return ofFiles(files, folder);
  });
}

export function openSample(): Promise<void> {
  const names = ['model.safetensors', 'config.json', 'tokenizer.json', 'tokenizer_config.json'];
  const fetchFile = async (name: string) => {
    const response = await fetch(`./sample/${name}`).catch(() => {
      throw new Error(
        'The sample (10 MB) has to be downloaded, and the network cannot be reached. Open a model from this computer; once downloaded, the sample works offline, too.',
      );
    });
    if (!response.ok) throw new Error(`The server answered ${response.status} for sample/${name}.`);
    return new File([await response.blob()], name);
  };
  return load('The sample', async () => ({ source: await Promise.all(names.map(fetchFile)), ...sample }));
}
