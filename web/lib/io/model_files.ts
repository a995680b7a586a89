// Which files make up a model: weights (one file, or shards in index order), config.json, and the small files that
// folder outputs copy (tokenizer, generation config, chat template).

import { failure } from '../api/errors.js';
import { formats, inputFormatOf, inputFormats, weightFilePattern } from '../api/formats.js';
import type { Folder } from './folder.js';
import type { FileSource } from './source.js';

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
  /** Opens a shard listed in the index. Errors: source-invalid naming it. */
  openShard(name: string): Promise<FileSource>;
  /** Text of config.json, or null. */
  config: string | null;
  /** Opens a file of the same folder; null if there is none, or only one source was given. */
  openBeside(name: string): Promise<FileSource | null>;
  /** Reads a file of the same folder; null if there is none, or the folder cannot be listed. */
  beside(name: string): Promise<Uint8Array | null>;
  /** Opens the small files, for folder outputs. */
  siblingFiles(): Promise<FileSource[]>;
}

const indexPattern = /\.safetensors\.index\.json$/i;
const shardPattern = /-\d{5}-of-\d{5}\.[^.]+$/;
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

async function bytesBeside(folder: Folder | null, name: string): Promise<Uint8Array | null> {
  if (!folder?.names?.includes(name)) return null;
  const file = await folder.open(name);
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
  return siblingFiles;
}

/** A folder's weights: its index, else a usual name, else all shards of a format, else the only file. */
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
    if (shards.length > 0) return shards.sort();
    const usual = `model${extensions[0]}`;
    if (weights.includes(usual)) return [usual];
    if (!hasSiblingFiles || weights.length === 0) continue;
    if (weights.length === 1) return weights; // the folder belongs to it; other formats are copies
    break;
  }
  const others = names.filter(isWeightName);
  if (others.length === 1) return others;
  const found =
    others.length > 0 ? `it has ${others.slice(0, 8).join(', ')}; name one of them` : 'it has no weight file';
  throw failure(
    'source-invalid',
    folder.where,
    `no model.safetensors or model.safetensors.index.json in this folder: ${found}`,
  );
}

/** A list's weights: its index, else every file that is not a sibling file. */
function weightsOfList(folder: Folder): string[] {
  const names = folder.names ?? [];
  const index = names.filter(isIndexName);
  if (index.length > 1)
    throw failure('source-invalid', folder.where, `has ${index.length} index files (${index.join(', ')}); give one`);
  if (index.length === 1) return index;
  const weights = names.filter((name) => name !== 'config.json' && !isSiblingFile(name));
  if (weights.length === 0) throw failure('source-invalid', folder.where, 'has no weight file');
  const naming = weights.filter((name) => {
    const format = inputFormatOf(name);
    return format !== null && formats.inputs[format].dataExtensions.length > 0;
  });
  if (naming.length === 1) return naming; // it refers to the others
  return weights;
}

async function opened(folder: Folder, name: string, mostBytes?: number): Promise<FileSource> {
  const file = await folder.open(name, mostBytes);
  if (!file)
    throw failure('source-invalid', name, `is missing in ${folder.where}; the index names it as a part of the model`);
  return file;
}

async function filesNamed(folder: Folder, names: string[], name: string | null): Promise<ModelFiles> {
  const [first] = names;
  const isIndex = first !== undefined && names.length === 1 && isIndexName(first);
  const shardMap = isIndex ? await textFrom(await opened(folder, first, maxTextBytes)) : null;
  const weights = isIndex ? [] : await Promise.all(names.map((name) => opened(folder, name)));
  const config = await textBeside(folder, 'config.json');
  return {
    where: folder.where,
    name,
    shardMap,
    weights,
    openShard: (name) => opened(folder, name),
    config,
    openBeside: (name) => folder.open(name),
    beside: (name) => bytesBeside(folder, name),
    siblingFiles: () => openSiblingFiles(folder),
  };
}

export async function filesOfFolder(folder: Folder): Promise<ModelFiles> {
  return filesNamed(folder, weightsIn(folder), folder.where);
}

/** Shards, with or without their index and the small files. */
export async function filesOfList(folder: Folder): Promise<ModelFiles> {
  return filesNamed(folder, weightsOfList(folder), null);
}

/** An index file stands for the whole model: its shards and the small files. */
export async function filesOfIndex(folder: Folder, name: string): Promise<ModelFiles> {
  return filesNamed(folder, [name], folder.where);
}

/** One weight file with its config.json; other files of the folder may be unrelated. */
export async function filesOfSingle(file: FileSource, folder: Folder | null): Promise<ModelFiles> {
  const missing = async (name: string): Promise<FileSource> => {
    throw failure('source-invalid', name, 'is missing: a single file was given');
  };
  const config = await textBeside(folder, 'config.json');
  return {
    where: file.name,
    name: file.name,
    shardMap: null,
    weights: [file],
    openShard: missing,
    config,
    openBeside: async (name) => folder?.open(name) ?? null,
    beside: (name) => bytesBeside(folder, name),
    siblingFiles: async () => [],
  };
}
