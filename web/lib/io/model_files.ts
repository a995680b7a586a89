// Which files make up a model: weights (one file, or shards in index order), config.json, and the small files that
// folder outputs copy (tokenizer, generation config, chat template).

import { failure, type QuantizationError } from '../api/errors.js';
import { formats, inputFormatOf, inputFormats, weightFilePattern } from '../api/formats.js';
import { loaded } from '../api/loaded.js';
import type { Diagnostic } from '../api/types.js';
import type { Companions } from './carried_files.js';
import { type FileSource, maxSiblingBytes } from './file_source.js';
import { type Folder, openIn } from './folder.js';
import { onnxParts, partRemarks } from './onnx_parts.js';
import {
  indexNamesOf,
  isFirstPart,
  isIndexName,
  isPartName,
  isVariantIndex,
  wholeName,
  withoutVariant,
} from './part_name.js';

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
  /** The other graphs of an ONNX model in parts. */
  parts: ModelFiles[];
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
  /** Names of the files in a subfolder of the model's folder; none if it cannot be listed. */
  namesIn(subfolder: string): Promise<string[]>;
  /** Opens the small files, for folder outputs, and names what such an output lacks. */
  companions(): Promise<Companions>;
}

/** Subfolder of ONNX files in repositories for transformers.js. */
const onnxFolder = 'onnx';
/** Files of a list that hold no weights, by their names. */
const companionPattern =
  /^\.|\.(json|jsonl|txt|model|jinja|py|md|tiktoken|vocab|bpe|spm)$|^(licen[cs]e|notice|readme|merges|vocab)[^/]*$/i;
/** Weights in formats that are not read. */
const otherWeightPattern = /\.(bin|pt|pth|ckpt|h5|msgpack|tflite)$/i;
/** Usual names of a single weight file, best first. */
const usualNames = ['model.safetensors', 'diffusion_pytorch_model.safetensors', 'adapter_model.safetensors'];
/** Tried one by one if a host cannot list (URLs). */
const usualSiblingFiles = [
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'tokenizer.model',
  'spiece.model',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'chat_template.json',
  'preprocessor_config.json',
  'processor_config.json',
];
/** An index of half a million tensors takes about 60 MB. */
const maxTextBytes = 256 * 1024 * 1024;

/** Whether files of a folder with this name may belong to a model in the folder around it. */
export const isOnnxFolder = (name: string) => name === onnxFolder;

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

/** The folder at a path inside another; null if there is none, or the host cannot list. */
async function folderIn(folder: Folder | null, path: string): Promise<Folder | null> {
  let at = folder;
  for (const part of path.split('/').filter((part) => part !== ''))
    at = at?.folders?.includes(part) ? await at.folder(part) : null;
  return at?.names ? at : null;
}

async function siblingBytes(model: Folder | null, path: string): Promise<Uint8Array | null> {
  const slash = path.lastIndexOf('/') + 1;
  const name = path.slice(slash);
  const folder = await folderIn(model, path.slice(0, slash));
  if (!folder?.names?.includes(name)) return null; // links out of it are not among the names
  const file = await folder.open(name);
  if (!file || file.size > maxSiblingBytes) return null;
  try {
    return await file.read(0, file.size);
  } finally {
    await file.close();
  }
}

/** `read`: paths of the weights in the model's folder. */
async function companionsOf(folder: Folder, read: ReadonlySet<string>): Promise<Companions> {
  if (folder.names) {
    const { companionsIn } = await loaded(import('./carried_files.js'));
    return companionsIn(folder, read, await textBeside(folder, 'modules.json'));
  }
  const files: FileSource[] = [];
  for (const name of usualSiblingFiles) {
    const file = await folder.open(name, maxTextBytes);
    if (file) files.push(file);
  }
  return { files, leftBehind: [] };
}

/** Links out of the folder, but not those of no use. */
async function linksLeftOut(folder: Folder | null): Promise<Diagnostic[]> {
  if (!folder?.links || folder.links.size === 0) return [];
  const { isOfUse } = await loaded(import('./carried_files.js'));
  return [...folder.links]
    .filter(([name]) => name === 'config.json' || isIndexName(name) || isOfUse(name))
    .map(([name, real]) => ({
      severity: 'warning',
      code: 'link-outside',
      where: name,
      message: `is a link to ${real}, outside the model's folder; it is neither read nor copied`,
      hint: 'replace the link with a copy of the file',
    }));
}

/** The parts of one model, of the plain one where there are variants. Error: source-invalid if they are of several. */
function partsOfOne(folder: Folder, parts: string[]): string[] {
  const all = new Set(parts.map(wholeName));
  const models = [...all].filter((name) => withoutVariant(name) === name || !all.has(withoutVariant(name)));
  const [model] = models;
  if (models.length === 1) return parts.filter((name) => wholeName(name) === model).sort();
  const first = parts.filter((name) => isFirstPart(name) && models.includes(wholeName(name))).sort();
  throw failure(
    'source-invalid',
    folder.where,
    `has parts of ${models.length} models; give one of ${first.join(', ')}`,
  );
}

/** Names of a folder's weights: its index, else a usual name, else all parts of a format, else the only file. Empty if
 * it has none. `isModelFolder`: all graphs in it are of one model. Errors: source-invalid. */
function weightsIn(folder: Folder, isModelFolder = folder.names?.includes('config.json') === true): string[] {
  const names = folder.names ?? [];
  const indexes = names.filter(isIndexName);
  const plain = indexes.filter((name) => !isVariantIndex(name));
  const index = plain.find((name) => name === 'model.safetensors.index.json') ?? (plain.length === 1 ? plain[0] : null);
  if (index) return [index];
  const usual = usualNames.find((name) => names.includes(name));
  if (usual) return [usual];
  const isPlainPart = (name: string) => isPartName(name) && !indexes.some((of) => wholeName(of) === wholeName(name));
  if (indexes.length === 1 && plain.length === 0 && !names.some(isPlainPart)) return indexes;
  for (const format of inputFormats) {
    const { extensions, hasSiblingFiles } = formats.inputs[format];
    const weights = names.filter((name) => inputFormatOf(name) === format);
    const parts = weights.filter(isPartName);
    if (parts.length > 0) return partsOfOne(folder, parts);
    const usual = `model${extensions[0]}`;
    if (weights.includes(usual)) return [usual];
    if (!hasSiblingFiles || weights.length === 0) continue;
    if (weights.length === 1) return weights; // the folder belongs to it; other formats are copies
    break;
  }
  const others = names.filter((name) => weightFilePattern.test(name) || otherWeightPattern.test(name));
  if (others.length <= 1) return others;
  const hasGraphs = others.every((name) => inputFormatOf(name) === 'onnx');
  if (hasGraphs && isModelFolder) return onnxParts(folder.where, others).files.slice(0, 1);
  const found = inputFormats.filter((format) => others.some((name) => inputFormatOf(name) === format));
  const usualOnes = found.map((format) => `model${formats.inputs[format].extensions[0]}`).join(' or ');
  const missing = hasGraphs ? 'model.onnx, and no config.json' : usualOnes || usualNames[0];
  const all = others.slice(0, 8).join(', ');
  throw failure('source-invalid', folder.where, `no ${missing} in this folder: it has ${all}; name one of them`);
}

/** A list's weights: its index, else all that can be read, else every file that is not a companion by its name; empty if there is
 * none. Errors: source-invalid. */
function weightsOfList(folder: Folder): string[] {
  const names = folder.names ?? [];
  const indexes = names.filter(isIndexName);
  const plain = indexes.filter((name) => !isVariantIndex(name));
  const index = plain.length > 0 || usualNames.some((name) => names.includes(name)) ? plain : indexes;
  if (index.length > 1)
    throw failure('source-invalid', folder.where, `has ${index.length} index files (${index.join(', ')}); give one`);
  if (index.length === 1) return index;
  // Next to weights that can be read lie pictures, and the same weights for other programs.
  const known = names.filter((name) => weightFilePattern.test(name));
  const weights = known.length > 0 ? known : names.filter((name) => !companionPattern.test(name));
  const naming = weights.filter((name) => {
    const format = inputFormatOf(name);
    return format !== null && formats.inputs[format].dataExtensions.length > 0;
  });
  if (naming.length === 1) return naming; // it refers to the others
  return weights;
}

/** Folders inside that hold weights, with one of the files each: `unet (diffusion_pytorch_model.safetensors)`. */
async function foldersWithWeights(folder: Folder, levels = 2): Promise<string[]> {
  const found: string[] = [];
  for (const name of folder.folders ?? []) {
    const inner = name.startsWith('.') ? null : await folder.folder(name);
    const weights = inner?.names?.find((file) => weightFilePattern.test(file));
    if (weights !== undefined) found.push(`${name} (${weights})`);
    else if (inner && levels > 1)
      found.push(...(await foldersWithWeights(inner, levels - 1)).map((path) => `${name}/${path}`));
  }
  return found;
}

/** The error for a folder without weights: names the folders in it that have some, or files of other kinds. */
async function noWeights(folder: Folder, detail: string): Promise<QuantizationError> {
  const inner = await foldersWithWeights(folder);
  if (inner.length > 0) {
    const shown = inner.slice(0, 8).join(', ');
    return failure(
      'source-invalid',
      folder.where,
      `has no weights itself; models are in its folders ${shown}: open one of them`,
    );
  }
  const { foreignAmong } = await loaded(import('./foreign_file.js'));
  const names = (folder.names ?? []).filter((name) => !name.startsWith('.'));
  return foreignAmong(names, (name) => folder.open(name), failure('source-invalid', folder.where, detail));
}

async function openPart(folder: Folder, name: string, mostBytes?: number): Promise<FileSource> {
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

/** A graph, and those of the other parts in its folder. */
async function filesOfGraphs(place: Place, graph: string, name: string | null): Promise<ModelFiles> {
  const { files, others } = onnxParts(place.folder.where, place.folder.names ?? []);
  const all = files.includes(graph) ? [graph, ...files.filter((file) => file !== graph)] : [graph];
  const read = new Set<string>();
  const [first, ...parts] = await Promise.all(all.map((file) => filesNamed(place, [file], name, read)));
  if (!first) throw new RangeError('a folder without graphs');
  const diagnostics = [
    ...first.diagnostics,
    ...partRemarks(
      all,
      others.filter((file) => file !== graph),
    ),
  ];
  return { ...first, parts, diagnostics };
}

/** `read`: gets the paths of the weights in the model's folder. */
async function filesNamed(
  { folder, model }: Place,
  names: string[],
  name: string | null,
  read = new Set<string>(),
): Promise<ModelFiles> {
  const opened = async (name: string, mostBytes?: number) => {
    const file = await openPart(folder, name, mostBytes);
    read.add(pathOfPart(name));
    return file;
  };
  const pathOfPart = (name: string) => (folder === model ? name : `${onnxFolder}/${name}`);
  const [first] = names;
  const isIndex = first !== undefined && names.length === 1 && isIndexName(first);
  const shardMap = isIndex ? await textFrom(await opened(first, maxTextBytes)) : null;
  const weights = isIndex ? [] : await Promise.all(names.map((name) => opened(name)));
  const config = await textBeside(model, 'config.json');
  return {
    where: folder.where,
    name,
    shardMap,
    weights,
    shard: null,
    isInOnnxFolder: folder !== model,
    parts: [],
    openShard: opened,
    config,
    diagnostics: await linksLeftOut(model),
    openSibling: async (path) => {
      read.add(pathOfPart(path));
      return openIn(folder, path);
    },
    readSibling: (path) => siblingBytes(model, path),
    namesIn: async (path) => (await folderIn(model, path))?.names ?? [],
    companions: () => companionsOf(model, read),
  };
}

/** A model whose weights are in `onnx/` of its folder; null if there are none. */
async function filesInOnnxFolder(model: Folder, name: string | null): Promise<ModelFiles | null> {
  const folder = await model.folder(onnxFolder);
  const [graph] = folder ? weightsIn(folder, true) : [];
  return folder && graph !== undefined ? filesOfGraphs({ folder, model }, graph, name) : null;
}

/** A folder with weights, or one for transformers.js with weights in `onnx/`. */
export async function filesOfFolder(folder: Folder): Promise<ModelFiles> {
  const weights = weightsIn(folder);
  const [graph] = weights;
  if (weights.length === 1 && graph !== undefined && inputFormatOf(graph) === 'onnx')
    return filesOfGraphs({ folder, model: folder }, graph, folder.where);
  if (weights.length > 0) return filesNamed({ folder, model: folder }, weights, folder.where);
  const inner = folder.names === null ? null : await filesInOnnxFolder(folder, folder.where);
  if (inner) return inner;
  const links = [...(folder.links?.keys() ?? [])].join(', ');
  const detail = `no model in this folder: it has no weight file${links && `; links out of it are not followed: ${links}`}`;
  throw await noWeights(folder, detail);
}

/** Parts, with or without their index and the small files; or the files of a folder, whose names then have paths. */
export async function filesOfList(folder: Folder): Promise<ModelFiles> {
  const [only, ...others] = folder.folders ?? [];
  const inner = folder.names?.length === 0 && others.length === 0 && only ? await folder.folder(only) : null;
  if (inner && only && !isOnnxFolder(only)) return filesOfPickedFolder({ ...inner, where: only });
  const weights = weightsOfList(folder);
  const inOnnx = weights.some((name) => weightFilePattern.test(name) || isIndexName(name))
    ? null
    : await (folder.folders?.includes(onnxFolder) ? filesInOnnxFolder(folder, null) : null);
  if (inOnnx) return inOnnx;
  const [graph, another] = weights;
  if (graph === undefined) throw await noWeights(folder, 'has no weight file');
  const areParts = another !== undefined && weights.every((name) => inputFormatOf(name) === 'onnx');
  if (areParts && folder.names?.includes('config.json'))
    return filesOfGraphs({ folder, model: folder }, onnxParts(folder.where, weights).files[0] ?? graph, null);
  return filesNamed({ folder, model: folder }, weights, null);
}

/** As a folder; where its own rule finds several models, all of them are one, as in a list. */
async function filesOfPickedFolder(folder: Folder): Promise<ModelFiles> {
  try {
    weightsIn(folder);
  } catch {
    return filesOfList(folder);
  }
  return filesOfFolder(folder);
}

/** An index file stands for the whole model: its shards and the small files. */
export async function filesOfIndex(folder: Folder, name: string): Promise<ModelFiles> {
  return filesNamed({ folder, model: folder }, [name], folder.where);
}

/** The index of the model that a part is of, by its name. */
async function indexOf(folder: Folder | null, part: string): Promise<string | null> {
  if (!folder || inputFormatOf(part) !== 'safetensors' || !isPartName(part)) return null;
  for (const index of indexNamesOf(part)) {
    if (folder.names?.includes(index)) return index;
    if (folder.names) continue;
    const file = await folder.open(index);
    await file?.close();
    if (file) return index;
  }
  return null;
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
  const pathOfPart = (name: string) => (model === around ? `${onnxFolder}/${name}` : name);
  const read = new Set([pathOfPart(file.name)]);
  return {
    where: file.name,
    name: file.name,
    shardMap: null,
    weights: [file],
    shard: null,
    isInOnnxFolder: false,
    parts: [],
    openShard: missing,
    config,
    diagnostics: (await linksLeftOut(model)).filter(({ where }) => config !== null || where === 'config.json'),
    openSibling: async (path) => {
      read.add(pathOfPart(path));
      return folder ? openIn(folder, path) : null;
    },
    readSibling: (path) => siblingBytes(model, path),
    namesIn: async (path) => (await folderIn(model, path))?.names ?? [],
    companions: async () => (model && config !== null ? companionsOf(model, read) : { files: [], leftBehind: [] }),
  };
}
