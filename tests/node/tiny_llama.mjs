// Parts of tiny-llama and of its texts, for tests in which less of them shows as much.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../interop/safetensors_file.mjs';
import { files, scratchFolder, tinyLlama } from './scratch.mjs';
import { safetensors } from './written_model.mjs';

const length = 256;

/** The first sequences, of 256 tokens each, of the text for `calib`, `eval` or `validation`. */
export function tokensOf(name, sequences) {
  const { data } = readTensors(join(files, `tiny-llama-reference/${name}_tokens.safetensors`)).get('input_ids');
  return { data: Int32Array.from(data.subarray(0, sequences * length)), shape: [sequences, length] };
}

/** The first rows of a matrix, or with `columns` the first columns of each row. */
function partOf({ dtype, shape: [rows, columns], data }, { rows: height = rows, columns: width = columns }) {
  const kept = new data.constructor(height * width);
  for (let row = 0; row < height; ++row) kept.set(data.subarray(row * columns, row * columns + width), row * width);
  return { dtype, shape: [height, width], data: kept };
}

/**
 * A folder with the first blocks of tiny-llama: half the work where a second block is like the fourth. `inner`: of the MLP's width, as
 * much, where it does not matter what the model writes; most of the work is there.
 */
export function firstBlocks(t, count, inner = null) {
  const folder = scratchFolder(t);
  const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
  const sizes = { num_hidden_layers: count, intermediate_size: inner ?? config.intermediate_size };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...sizes }));
  const isKept = ([name]) => !(/^model\.layers\.(\d+)\./.exec(name)?.[1] >= count);
  const narrowed = ([name, tensor]) => {
    if (inner && /(gate|up)_proj/.test(name)) return [name, partOf(tensor, { rows: inner })];
    return [name, inner && /down_proj/.test(name) ? partOf(tensor, { columns: inner }) : tensor];
  };
  const tensors = [...readTensors(join(tinyLlama, 'model.safetensors'))].filter(isKept).map(narrowed);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
  return folder;
}
