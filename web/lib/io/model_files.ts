// Which files make up a model: weights (one file, or shards in index order), config.json, and the small files that
// folder outputs copy (tokenizer, generation config, chat template).

import { failure, type QuantizationError } from '../api/errors.js';
import { formats, inputFormatOf, inputFormats, weightFilePattern } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import type { Diagnostic } from '../api/types.js';
import type { FileSource } from './file_source.js';
import { type Folder, openIn } from './folder.js';

/** A model's files; only config.json and the index are read yet. */
export interface ModelFiles {
  /** For messages: path, URL or name. */
  where: string;
  /** The model's name, from its folder or file; null for a list. */
  name: string | null;
  /** Text of the index file, or null. */
  shardMap: string | null;
  /** Opened weight files; empty if `shardMap` lists them. */
  weights: FileSource[];
  /** The shard that was given and led to the index; else null. */
  shard: string | null;
  /** Whether the weights are in the folder `onnx` of the model's folder. */
  isInOnnxFolder: boolean;
  /** Opens a shard listed in the index. Errors: source-invalid naming it. */
  openShard(name: string): Promise<FileSource>;
  /** Text of config.json, or null. */
  config: string | null;
  /** Links out of the model's folder that have names of its files: they are left out. */
  diagnostics: Diagnostic[];
  /** Opens a file by its path from the weights' folder; null if there is none, or only one source was given. */
  openSibling(path: string): Promise<FileSource | null>;
  /** Reads a file by its path from the model's folder; null if it is missing or the folder cannot be listed. */
  readSibling(path: string): Promise<Uint8Array | null>;
  /** Opens the small files, for folder outputs. */
  siblingFiles(): Promise<FileSource[]>;
}

const indexPattern = /\.safetensors\.index\.json$/i;
const shardPattern = /-\d{5}-of-\d{5}(\.[^.]+)$/;
/** Subfolder of ONNX files in repositories for transformers.js. */
const onnxFolder = 'onnx';
/** Weights in unsupported formats; folder outputs do not copy them. */
const otherWeightPattern = /\.(bin|pt|pth|ckpt|h5|msgpack|tflite)$/i;
const isWeightName = (name: string) => weightFilePattern.test(name) || otherWeightPattern.test(name);
const siblingFilePattern =
  /(\.(json|jsonl|txt|model|jinja|py|md|tiktoken|vocab|bpe|spm)|^(licen[cs]e|notice|readme|merges|vocab)[^/]*)$/i;
/** Usual names of a single weight file, best first. */
const usualNames = ['model.safetensors', 'diffusion_pytorch_model.safetensors', 'adapter_model.safetensors'];
/** Tried one by one if a host cannot list (URLs). */
const usualSiblingFiles = [
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'tokenizer.model',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'preprocessor_config.json',
];
/** An index of half a million tensors takes about 60 MB. */
const maxTextBytes = 256 * 1024 * 1024;

/** Whether files of a folder with this name may belong to a model in the folder around it. */
export const isOnnxFolder = (name: string) => name === onnxFolder;

export const isIndexName = (name: string) => indexPattern.test(name);

/** Whether folder outputs copy the file. */
function isSiblingFile(name: string): boolean {
  return (
    name !== 'config.json' &&
    !name.startsWith('.') &&
    !isIndexName(name) &&
    !isWeightName(name) &&
    siblingFilePattern.test(name)
  );
}

async function textFrom(file: FileSource): Promise<string> {
  if (file.size > maxTextBytes)
    throw failure('file-too-large', file.name, `${file.size} bytes; JSON files may have ${maxTextBytes}`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.read(0, file.size));
  } catch (error) {
    if (error instanceof TypeError) throw failure('json-invalid', file.name, 'is not UTF-8 text', error);
    throw error;
  } finally {
    await file.close();
  }
}

async function textBeside(folder: Folder | null, name: string): Promise<string | null> {
  if (!folder || (folder.names && !folder.names.includes(name))) return null;
  const file = await folder.open(name, maxTextBytes);
  return file ? textFrom(file) : null;
}

/** Vocabulary files take some 20 MB; larger files are something else. */
export const maxSiblingBytes = 64 * 1024 * 1024;

async function siblingBytes(folder: Folder | null, path: string): Promise<Uint8Array | null> {
  if (!folder?.names || folder.links?.has(path)) return null; // linksLeftOut has named it
  const file = await openIn(folder, path);
  if (!file || file.size > maxSiblingBytes) return null;
  try {
    return await file.read(0, file.size);
  } finally {
    await file.close();
  }
}

/** What ModelOpt, AutoGPTQ and AutoAWQ say of the original weights. */
const storedDescriptions = ['hf_quant_config.json', 'quantize_config.json', 'quant_config.json'];
const isCarried = (name: string) => isSiblingFile(name) && !storedDescriptions.includes(name);

async function openSiblingFiles(folder: Folder): Promise<FileSource[]> {
  const siblingFiles: FileSource[] = [];
  for (const name of folder.names?.filter(isCarried) ?? usualSiblingFiles) {
    const file = await folder.open(name, maxTextBytes);
    if (file) siblingFiles.push(file);
  }
  return [...siblingFiles, ...(await openModuleFiles(folder))];
}

/** Folders of sentence-transformers' modules, such as `1_Pooling`. */
const modulePattern = /^\d+_[A-Z]\w*$/;
const isModuleFolder = (name: string) => modulePattern.test(name);

/** The files of the modules in modules.json, without which sentence-transformers does not load a folder. Those of a list are among its
 * names already. */
async function openModuleFiles(folder: Folder): Promise<FileSource[]> {
  const text = folder.names ? await textBeside(folder, 'modules.json') : null;
  if (text === null) return [];
  const files: FileSource[] = [];
  for (const path of modulePaths(text)) {
    const inner = await folder.folder(path);
    for (const name of inner?.names ?? []) {
      if (folder.names?.includes(`${path}/${name}`)) continue;
      const file = await inner?.open(name, maxTextBytes);
      if (file) files.push(named(file, `${path}/${name}`));
    }
  }
  return files;
}

/** The folders that modules.json names. None if it is not JSON: plans say so, with the place. */
export function modulePaths(text: string): string[] {
  try {
    const modules = JSON.parse(text) as { path?: unknown }[];
    return modules
      .map(({ path }) => path)
      .filter((path) => typeof path === 'string' && isModuleFolder(path)) as string[];
  } catch {
    return [];
  }
}

const named = (file: FileSource, name: string): FileSource => ({
  name,
  size: file.size,
  remote: file.remote,
  read: (offset, length) => file.read(offset, length),
  close: () => file.close(),
});

/** config.json, the index, carried files and folders of modules that are links out of the folder. */
function linksLeftOut(folder: Folder | null): Diagnostic[] {
  return [...(folder?.links ?? [])]
    .filter(([name]) => name === 'config.json' || isIndexName(name) || isCarried(name) || modulePattern.test(name))
    .map(([name, real]) => ({
      severity: 'warning',
      code: 'link-outside',
      where: name,
      message: `is a link to ${real}, outside the model's folder; it is neither read nor copied`,
      hint: 'replace the link with a copy of the file',
    }));
}

/** Shards of one model. Error: source-invalid if they are of several. */
function shardsOfOne(folder: Folder, shards: string[]): string[] {
  const models = new Set(shards.map((name) => name.replace(/-\d{5}(-of-\d{5})/, '$1')));
  if (models.size === 1) return shards.sort();
  const first = shards.filter((name) => /-00001-of-/.test(name)).sort();
  throw failure('source-invalid', folder.where, `has parts of ${models.size} models; give one of ${first.join(', ')}`);
}

/** Names of a folder's weights: its index, else a usual name, else all shards of a format, else the only file. Empty if
 * it has none. Errors: source-invalid. */
function weightsIn(folder: Folder): string[] {
  const names = folder.names ?? [];
  const indexes = names.filter(isIndexName);
  const index =
    indexes.find((name) => name === 'model.safetensors.index.json') ?? (indexes.length === 1 ? indexes[0] : undefined);
  if (index) return [index];
  const usual = usualNames.find((name) => names.includes(name));
  if (usual) return [usual];
  for (const format of inputFormats) {
    const { extensions, hasSiblingFiles } = formats.inputs[format];
    const weights = names.filter((name) => inputFormatOf(name) === format);
    const shards = weights.filter((name) => shardPattern.test(name));
    if (shards.length > 0) return shardsOfOne(folder, shards);
    const usual = `model${extensions[0]}`;
    if (weights.includes(usual)) return [usual];
    if (!hasSiblingFiles || weights.length === 0) continue;
    if (weights.length === 1) return weights; // the folder belongs to it; other formats are copies
    break;
  }
  const others = names.filter(isWeightName);
  if (others.length <= 1) return others;
  const found = `it has ${others.slice(0, 8).join(', ')}; name one of them`;
  throw failure(
    'source-invalid',
    folder.where,
    `no model.safetensors or model.safetensors.index.json in this folder: ${found}`,
  );
}

/** A list's weights: its index, else every file that is not a sibling file; empty if there is none. */
function weightsOfList(folder: Folder): string[] {
  const names = folder.names ?? [];
  const index = names.filter(isIndexName);
  if (index.length > 1)
    throw failure('source-invalid', folder.where, `has ${index.length} index files (${index.join(', ')}); give one`);
  if (index.length === 1) return index;
  const others = names.filter((name) => name !== 'config.json' && !isSiblingFile(name));
  const direct = others.filter((name) => !name.includes('/'));
  const found = direct.length > 0 ? direct : others;
  // Next to weights that can be read lie pictures, and the same weights for other programs.
  const known = found.filter((name) => weightFilePattern.test(name));
  const weights = known.length > 0 ? known : found;
  const naming = weights.filter((name) => {
    const format = inputFormatOf(name);
    return format !== null && formats.inputs[format].dataExtensions.length > 0;
  });
  if (naming.length === 1) return naming; // it refers to the others
  return weights;
}

/** The error for a folder without weights, which names files of other kinds that are in it. */
async function noWeights(folder: Folder, detail: string): Promise<QuantizationError> {
  const { foreignAmong } = await loaded(import('./foreign_file.js'));
  const names = (folder.names ?? []).filter((name) => !name.startsWith('.'));
  return foreignAmong(names, (name) => folder.open(name), failure('source-invalid', folder.where, detail));
}

async function opened(folder: Folder, name: string, mostBytes?: number): Promise<FileSource> {
  const file = await folder.open(name, mostBytes);
  if (!file)
    throw failure(
      'source-invalid',
      name,
      `is missing in ${folder.where}; the index names it as a part of the model: give all parts`,
    );
  return file;
}

interface Place {
  /** Of the weights. */
  folder: Folder;
  /** Of config.json and the small files. */
  model: Folder;
}

async function filesNamed({ folder, model }: Place, names: string[], name: string | null): Promise<ModelFiles> {
  const [first] = names;
  const isIndex = first !== undefined && names.length === 1 && isIndexName(first);
  const shardMap = isIndex ? await textFrom(await opened(folder, first, maxTextBytes)) : null;
  const weights = isIndex ? [] : await Promise.all(names.map((name) => opened(folder, name)));
  const config = await textBeside(model, 'config.json');
  return {
    where: folder.where,
    name,
    shardMap,
    weights,
    shard: null,
    isInOnnxFolder: folder !== model,
    openShard: (name) => opened(folder, name),
    config,
    diagnostics: linksLeftOut(model),
    openSibling: (path) => openIn(folder, path),
    readSibling: (path) => siblingBytes(model, path),
    siblingFiles: () => openSiblingFiles(model),
  };
}

/** A model whose weights are in `onnx/` of its folder; null if there are none. */
async function filesInOnnxFolder(model: Folder, name: string | null): Promise<ModelFiles | null> {
  const folder = await model.folder(onnxFolder);
  const graphs = folder ? weightsIn(folder) : [];
  return folder && graphs.length > 0 ? filesNamed({ folder, model }, graphs, name) : null;
}

/** A folder with weights, or one for transformers.js with weights in `onnx/`. */
export async function filesOfFolder(folder: Folder): Promise<ModelFiles> {
  const weights = weightsIn(folder);
  if (weights.length > 0) return filesNamed({ folder, model: folder }, weights, folder.where);
  const inner = folder.names === null ? null : await filesInOnnxFolder(folder, folder.where);
  if (inner) return inner;
  const links = [...(folder.links?.keys() ?? [])].join(', ');
  const detail = `no model in this folder: it has no weight file${links && `; links out of it are not followed: ${links}`}`;
  throw await noWeights(folder, detail);
}

/** Shards, with or without their index and the small files; or the files of a folder with weights in `onnx/`. */
export async function filesOfList(folder: Folder): Promise<ModelFiles> {
  const graphs = (folder.names ?? []).filter((name) => inputFormatOf(name) === 'onnx');
  if (graphs.length > 0 && graphs.every((name) => name.startsWith(`${onnxFolder}/`))) {
    const inner = await filesInOnnxFolder(folder, null);
    if (inner) return inner;
  }
  const weights = weightsOfList(folder);
  if (weights.length === 0) throw await noWeights(folder, 'has no weight file');
  return filesNamed({ folder, model: folder }, weights, null);
}

/** An index file stands for the whole model: its shards and the small files. */
export async function filesOfIndex(folder: Folder, name: string): Promise<ModelFiles> {
  return filesNamed({ folder, model: folder }, [name], folder.where);
}

/** The index of the model that a shard is of, by its name. */
async function indexOf(folder: Folder | null, shard: string): Promise<string | null> {
  if (!folder || inputFormatOf(shard) !== 'safetensors' || !shardPattern.test(shard)) return null;
  const index = shard.replace(shardPattern, '$1.index.json');
  if (folder.names) return folder.names.includes(index) ? index : null;
  const file = await folder.open(index);
  await file?.close();
  return file && index;
}

/** One weight file, or a part of a model that stands for all of it. The folder is the model's if it has config.json,
 * else other files of it may be unrelated. `around`: the folder that contains it, if it is called `onnx`. */
export async function filesOfSingle(
  file: FileSource,
  folder: Folder | null,
  around: Folder | null,
): Promise<ModelFiles> {
  const index = await indexOf(folder, file.name);
  if (folder && index) {
    await file.close();
    return { ...(await filesOfIndex(folder, index)), shard: file.name };
  }
  const missing = async (name: string): Promise<FileSource> => {
    throw failure('source-invalid', name, 'is missing: a single file was given');
  };
  const near = await textBeside(folder, 'config.json');
  const config = near ?? (await textBeside(around, 'config.json'));
  const model = near === null && config !== null ? around : folder;
  return {
    where: file.name,
    name: file.name,
    shardMap: null,
    weights: [file],
    shard: null,
    isInOnnxFolder: false,
    openShard: missing,
    config,
    diagnostics: linksLeftOut(model).filter(({ where }) => config !== null || where === 'config.json'),
    openSibling: async (path) => (folder ? openIn(folder, path) : null),
    readSibling: (path) => siblingBytes(model, path),
    siblingFiles: async () => (model && config !== null ? openSiblingFiles(model) : []),
  };
}
