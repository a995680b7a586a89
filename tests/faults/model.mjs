// The model that faults happen to: large enough for a run to last, small enough for hundreds of runs.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { weights, writeSafetensors } from '../bench/model_files.mjs';

const shape = [1024, 2048];

/** A folder with `layers` matrices of 8 MiB, config.json and a tokenizer file. */
export function writeModel(folder, layers = 6) {
  mkdirSync(folder, { recursive: true });
  const block = weights(shape[0] * shape[1], 7);
  const tensors = Array.from({ length: layers }, (_, layer) => ({
    name: `model.layers.${layer}.mlp.up_proj.weight`,
    shape,
  }));
  writeSafetensors(join(folder, 'model.safetensors'), tensors, block);
  writeFileSync(join(folder, 'config.json'), '{"model_type": "llama"}\n');
  writeFileSync(join(folder, 'tokenizer.json'), '{}\n');
  return folder;
}

/**
 * Digest of every file of a folder by name, or of those called `only`, without those that end in `but`; null
 * when the folder is not there.
 */
export function contentsOf(folder, only = null, but = null) {
  let names;
  try {
    names = readdirSync(folder, { recursive: true }).sort();
  } catch {
    return null;
  }
  const hash = createHash('sha256');
  for (const name of names) {
    if ((only !== null && name !== only) || (but !== null && name.endsWith(but))) continue;
    hash.update(`${name}\0`);
    try {
      hash.update(readFileSync(join(folder, name)));
    } catch (error) {
      if (error.code !== 'EISDIR') throw error;
    }
  }
  return hash.digest('hex');
}

/** The same numbers on every run. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
