// A Llama of the usual shapes without its data: the file is a hole that takes no disk.
import { join } from 'node:path';
import { writeSparseSafetensors } from '../../bench/model_files.mjs';
import { scratchFolder } from '../scratch.mjs';

/** Path of a file of `layers` blocks, each with seven matrices and two norms; embedding, last norm and head besides. */
export function largeModel(t, { layers, hidden = 4096, inner = 14336 }) {
  const matrix = (name, rows, columns) => ({ name: `${name}.weight`, shape: [rows, columns] });
  const tensors = [matrix('model.embed_tokens', 128256, hidden)];
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q', 'k', 'v', 'o']) tensors.push(matrix(`${at}.self_attn.${name}_proj`, hidden, hidden));
    for (const name of ['gate', 'up']) tensors.push(matrix(`${at}.mlp.${name}_proj`, inner, hidden));
    tensors.push(matrix(`${at}.mlp.down_proj`, hidden, inner));
    for (const name of ['input_layernorm', 'post_attention_layernorm'])
      tensors.push({ name: `${at}.${name}.weight`, shape: [hidden] });
  }
  tensors.push({ name: 'model.norm.weight', shape: [hidden] }, matrix('lm_head', 128256, hidden));
  const path = join(scratchFolder(t), 'model.safetensors');
  writeSparseSafetensors(path, tensors);
  return path;
}
