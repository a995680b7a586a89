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

/** A folder with `shards` files of one matrix of 4 MiB each, their index and config.json. */
export function writeShards(folder, shards) {
  mkdirSync(folder, { recursive: true });
  const rows = [512, 2048];
  const weight_map = {};
  for (let shard = 0; shard < shards; ++shard) {
    const number = (value) => String(value).padStart(5, '0');
    const file = `model-${number(shard + 1)}-of-${number(shards)}.safetensors`;
    const name = `model.layers.${shard}.mlp.up_proj.weight`;
    writeSafetensors(join(folder, file), [{ name, shape: rows }], weights(rows[0] * rows[1], shard + 1));
    weight_map[name] = file;
  }
  const total_size = 4 * rows[0] * rows[1] * shards;
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ metadata: { total_size }, weight_map }));
  writeFileSync(join(folder, 'config.json'), '{"model_type": "llama"}\n');
  return folder;
}

/**
 * Digest of every file of a folder by name, or of those called `only`, without those that `but` says; null
 * when the folder is not there.
 */
export function contentsOf(folder, only = null, but = () => false) {
  let names;
  try {
    names = readdirSync(folder, { recursive: true }).sort();
  } catch {
    return null;
  }
  const hash = createHash('sha256');
  for (const name of names) {
    if ((only !== null && name !== only) || but(name)) continue;
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
