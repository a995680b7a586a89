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

/** A folder with the first blocks of tiny-llama: half the work where a second block is like the fourth. */
export function firstBlocks(t, count) {
  const folder = scratchFolder(t);
  const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, num_hidden_layers: count }));
  const isKept = ([name]) => !(/^model\.layers\.(\d+)\./.exec(name)?.[1] >= count);
  const tensors = [...readTensors(join(tinyLlama, 'model.safetensors'))].filter(isKept);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
  return folder;
}
