// What becomes of each file of a model's folder in an output folder: it is carried along, or left behind and named in a note, or
// left behind without a word because it is of no use there.

import type { FileSource } from './file_source.js';
import { type Folder, openIn } from './folder.js';

type Fate = 'carried' | 'named' | 'useless';

interface Row {
  /** Of paths in the model's folder; those of folders end in a slash. */
  pattern: RegExp;
  fate: Fate;
  why: string;
}

/** The first that matches decides. Files that none matches are named. */
const rows: readonly Row[] = [
  { pattern: /^config\.json$/, fate: 'useless', why: 'the output has its own' },
  {
    pattern:
      /(^|\/)(\.git(hub|attributes|ignore|modules)?|\.cache|\.huggingface|\.ipynb_checkpoints|\.vscode|\.idea)\/?$/,
    fate: 'useless',
    why: 'belongs to the place where the folder lies',
  },
  { pattern: /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini)$/i, fate: 'useless', why: 'belongs to a file manager' },
  { pattern: /(^|\/)(__pycache__|node_modules|\.?venv)\/$/, fate: 'useless', why: 'is made again by its tool' },
  { pattern: /(^|\/)\.[^/]*\/?$/, fate: 'named', why: 'is hidden, and may hold secrets' },
  {
    pattern: /(^|\/)((quantize|quant|hf_quant|quantization)_config\.json|[^/]*\.index(\.[\w-]+)?\.json)$/,
    fate: 'useless',
    why: 'describes the weights of the model, not those of the output',
  },
  {
    pattern:
      /^(pytorch_model([-.][^/]*)?\.bin|tf_model([-.][^/]*)?\.h5|flax_model([-.][^/]*)?\.msgpack|rust_model\.ot)$/,
    fate: 'useless',
    why: 'holds the same weights for another program',
  },
  {
    pattern: /^(optimizer|scheduler|scaler|rng_state[^/]*|training_args)\.(pt|pth|bin)$/,
    fate: 'useless',
    why: 'is the state of a training',
  },
  { pattern: /^[^/]*\.(png|jpe?g|gif|svg|webp|bmp|ico)$/i, fate: 'useless', why: 'is a picture of the README' },
  {
    pattern: /^(additional_chat_templates|language_model|speaker_embeddings)\/./,
    fate: 'carried',
    why: 'belongs to the tokenizer or the processor, in any format',
  },
  { pattern: /\.(safetensors|gguf|onnx|bin|pt|pth|ckpt|h5|msgpack|tflite|ot)$/i, fate: 'named', why: 'holds weights' },
  {
    pattern: /\.(json|jsonl|txt|model|model\.v\d+\w*|jinja2?|py|md|rst|tiktoken|vocab|bpe|spm|ya?ml|toml|npy|npz)$/i,
    fate: 'carried',
    why: 'is a text, code, a vocabulary or a small array',
  },
  {
    pattern: /(^|\/)(licen[cs]e|notice|readme|merges|vocab)[^/]*$/i,
    fate: 'carried',
    why: 'is a licence, a description or a vocabulary',
  },
];

const rowOf = (path: string) => rows.find(({ pattern }) => pattern.test(path));
const fateOf = (path: string): Fate => rowOf(path)?.fate ?? 'named';

/** Whether an output folder lacks something without the file. */
export const isOfUse = (path: string) => fateOf(path) !== 'useless';

/** Deeper folders are no parts of a model. */
const mostLevels = 8;
/** A folder of more small files, such as one of downloads, has not been made for a model. */
const mostFiles = 1000;
const weightPattern = /\.(safetensors|gguf|onnx|bin|pt|pth|ckpt|h5|msgpack|tflite|ot)$/i;

/** Whether weights are in the folder or further down: then it is a model of its own. */
async function holdsWeights(folder: Folder, levels: number): Promise<boolean> {
  if (folder.names?.some((name) => weightPattern.test(name))) return true;
  if (levels === 0) return false;
  for (const name of folder.folders ?? []) {
    const inner = await folder.folder(name);
    if (inner && (await holdsWeights(inner, levels - 1))) return true;
  }
  return false;
}

/** Paths in the model's folder; those of folders end in a slash. */
interface SortedPaths {
  carried: string[];
  named: string[];
}

/** Sorts what is in `folder`, whose path `prefix` is '' or ends in a slash. `read`: paths of the weights. `modules`: folders that
 * modules.json names, which are carried whole. */
async function sort(
  folder: Folder,
  prefix: string,
  read: ReadonlySet<string>,
  modules: readonly string[],
  sorted: SortedPaths,
): Promise<void> {
  const levels = mostLevels - prefix.split('/').length;
  const isIn = (outer: string) => prefix.startsWith(`${outer}/`);
  for (const name of folder.names ?? []) {
    const path = prefix + name;
    const fate = read.has(path) ? 'useless' : modules.some(isIn) ? 'carried' : fateOf(path);
    if (fate !== 'useless') sorted[fate].push(path);
  }
  if (prefix !== '') for (const name of folder.links?.keys() ?? []) sorted.named.push(prefix + name);
  for (const name of folder.folders ?? []) {
    const path = `${prefix}${name}/`;
    const row = rowOf(path);
    const inner = row?.fate === 'useless' ? null : await folder.folder(name);
    if (!inner) continue;
    const holdsPart = [...read, ...modules.map((module) => `${module}/`)].some((part) => part.startsWith(path));
    const isPart = holdsPart || modules.some(isIn) || fateOf(`${path}x.bin`) === 'carried';
    const isOther = row?.fate === 'named' || (!isPart && (await holdsWeights(inner, levels)));
    if (isOther || levels === 0 || sorted.carried.length > mostFiles) sorted.named.push(path);
    else await sort(inner, path, read, modules, sorted);
  }
}

/** The folders of sentence-transformers' modules, which modules.json names. None if it is not JSON: plans say so, with the place. */
export function modulePaths(text: string): string[] {
  try {
    const modules = JSON.parse(text) as { path?: unknown }[];
    return modules.flatMap(({ path }) => (typeof path === 'string' && isInside(path) ? [path] : []));
  } catch {
    return [];
  }
}

/** Whether a path out of a file names a folder inside that of the model. */
const isInside = (path: string) =>
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\:]/.test(part));

export interface Companions {
  /** For the output's folder, with their paths as names. */
  files: FileSource[];
  /** Paths of what the output lacks; those of folders end in a slash. */
  leftBehind: string[];
}

const named = (file: FileSource, name: string): FileSource => ({
  name,
  size: file.size,
  remote: file.remote,
  read: (offset, length) => file.read(offset, length),
  close: () => file.close(),
});

/** What belongs to the model of a folder that can be listed. `read`: paths of its weights. `modules`: text of modules.json. */
export async function companionsIn(
  folder: Folder,
  read: ReadonlySet<string>,
  modules: string | null,
): Promise<Companions> {
  const sorted: SortedPaths = { carried: [], named: [] };
  await sort(folder, '', read, modulePaths(modules ?? '[]'), sorted);
  const files: FileSource[] = [];
  for (const path of sorted.carried) {
    const file = await openIn(folder, path);
    if (file) files.push(file.name === path ? file : named(file, path));
    else sorted.named.push(path);
  }
  return { files, leftBehind: sorted.named.sort() };
}
