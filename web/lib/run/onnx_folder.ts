// A folder for transformers.js grows: each dtype and each part of a model is a file of its own, and one config.json
// describes them all. What is there stays, if it is of the same model.

import { failure } from '../api/errors.js';
import { inputFormatOf } from '../api/formats.js';
import type { OutputTarget } from '../io/target.js';
import type { PresentFiles } from '../plan/plan.js';
import type { SmallFile } from './sidecar_files.js';

const folder = 'onnx';
const configName = 'config.json';
const filesKey = 'transformers.js_config';

type Json = Record<string, unknown>;

/** Null if it is not an object. As in Python, NaN and Infinity are allowed. */
function parsed(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text.replace(/(?<=[:[,]\s*)(NaN|-?Infinity)(?=\s*[,\]}])/g, '"$1"'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
  } catch {
    return null;
  }
}

/** Equal for equal values, regardless of the order of keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

/** Whether two texts of config.json are of one model: they differ at most in what they say of files. */
function areOfOneModel(one: string, other: string): boolean {
  const [a, b] = [parsed(one), parsed(other)];
  if (!a || !b) return one === other;
  return canonical({ ...a, [filesKey]: null }) === canonical({ ...b, [filesKey]: null });
}

const textOf = (bytes: Uint8Array | null) => bytes && new TextDecoder().decode(bytes);

/** The ONNX files among `names`, paths, with the numbers of their data files: `<file>_data`, `<file>_data_1` and so on. */
function filesAmong(names: readonly string[]): PresentFiles['files'] {
  const files: PresentFiles['files'] = {};
  for (const name of names) {
    if (inputFormatOf(name) !== 'onnx') continue;
    let count = 0;
    while (names.includes(`${name}_data${count === 0 ? '' : `_${count}`}`)) count += 1;
    files[name.slice(name.lastIndexOf('/') + 1)] = count;
  }
  return files;
}

/** What `target` holds already. `config`: text of the source's config.json, or null. */
export async function presentFiles(target: OutputTarget, config: string | null): Promise<PresentFiles | null> {
  if (!target.existing) return null;
  const inner = target.takesFolders ? `${folder}/` : '';
  const names = (await target.existing.names([folder])).filter(
    (name) => name.slice(0, name.lastIndexOf('/') + 1) === inner,
  );
  const files = filesAmong(names);
  if (Object.keys(files).length === 0) return null;
  const existing = textOf(await target.existing.read(configName));
  const isOurs = existing !== null && config !== null && areOfOneModel(existing, config);
  return { files, declared: isOurs ? (parsed(existing)?.[filesKey] ?? null) : null };
}

/** `present` with the files of one more part, which `config`, the text of the new config.json, describes. */
export function withPart(present: PresentFiles | null, names: readonly string[], config: string): PresentFiles {
  return {
    files: { ...present?.files, ...filesAmong(names) },
    declared: parsed(config)?.[filesKey] ?? present?.declared ?? null,
  };
}

/** Small files of a run into a folder that may have them already. */
export interface NewFiles {
  /** Those that are to be written. */
  written: SmallFile[];
  /** Names of existing files that are written again. */
  replaced: Set<string>;
}

/** Leaves files that are there already, with the same content. Errors: target-exists, naming a file of another model. */
export async function newFiles(target: OutputTarget, small: SmallFile[], overwrite: boolean): Promise<NewFiles> {
  const found: NewFiles = { written: [], replaced: new Set() };
  for (const file of small) {
    const existing = (await target.existing?.read(file.name)) ?? null;
    if (existing === null || overwrite) {
      found.written.push(file);
      continue;
    }
    const content = await file.content();
    const isEqual = content.length === existing.length && content.every((byte, at) => byte === existing[at]);
    if (isEqual) continue;
    if (file.name !== configName || !areOfOneModel(textOf(content) ?? '', textOf(existing) ?? ''))
      throw failure(
        'target-exists',
        file.name,
        'exists already with other content: this folder belongs to another model; choose another, or pass overwrite (--force)',
      );
    found.written.push(file);
    found.replaced.add(file.name);
  }
  return found;
}
