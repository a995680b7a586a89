// Files for images (mmproj): names, keys and values of a tower, and what is said where none can be written. Real towers are compared with
// llama.cpp's converter by npm run test:gguf-families.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const tower = {
  depth: 1,
  hidden_size: 32,
  intermediate_size: 64,
  num_heads: 2,
  patch_size: 4,
  fullatt_block_indexes: [3, 7],
};
const config = { model_type: 'qwen2_5_vl', hidden_size: 48, vision_config: tower };
const patches = noise(32 * 3 * 2 * 16);
const weights = {
  'visual.patch_embed.proj.weight': [32, 3, 2, 4, 4],
  'visual.blocks.0.attn.qkv.weight': [96, 32],
  'visual.blocks.0.attn.qkv.bias': [96],
  'visual.blocks.0.norm1.weight': [32],
  'visual.merger.mlp.0.weight': [64, 64],
  'model.layers.0.mlp.up_proj.weight': [96, 48],
  'lm_head.weight': [64, 48],
};

function write(folder, more = {}) {
  const tensors = Object.entries({ ...weights, ...more }).map(([name, shape]) => {
    const data = name.includes('patch_embed') ? patches : noise(shape.reduce((a, b) => a * b));
    return [name, { dtype: 'F32', shape, data }];
  });
  mkdirSync(folder);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors)));
  return folder;
}

const processor = (folder) => {
  const image = { image_mean: [0.5, 0.25, 0.125], image_std: [1, 2, 4] };
  writeFileSync(join(folder, 'preprocessor_config.json'), JSON.stringify(image));
};

test('the tower of a model that sees images, without its language model', async (t) => {
  const scratch = scratchFolder(t);
  const folder = write(join(scratch, 'seer'));
  processor(folder);
  const out = join(scratch, 'out');
  const arguments_ = ['quantize', folder, '-o', out, '--format', 'gguf', '--preset', 'f16', '--mmproj'];
  const { code, stdout, stderr } = await cli(arguments_);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /llama-mtmd-cli -m TEXT\.gguf --mmproj/);
  assert.doesNotMatch(stdout, /llama-completion/);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, join(out, 'mmproj-seer-F16.gguf'));
  const dtypes = Object.fromEntries(
    model.tensors.map(({ name, dtype, shape }) => [name, `${dtype} ${shape.join('x')}`]),
  );
  assert.deepEqual(dtypes, {
    'v.patch_embd.weight': 'F16 32x3x4x4',
    'v.patch_embd.weight.1': 'F16 32x3x4x4',
    'v.blk.0.attn_q.weight': 'F16 32x32',
    'v.blk.0.attn_k.weight': 'F16 32x32',
    'v.blk.0.attn_v.weight': 'F16 32x32',
    'v.blk.0.attn_q.bias': 'F32 32',
    'v.blk.0.attn_k.bias': 'F32 32',
    'v.blk.0.attn_v.bias': 'F32 32',
    'v.blk.0.ln1.weight': 'F32 32',
    'mm.0.weight': 'F16 64x64',
  });
  const keys = Object.entries(model.metadata).filter(([key]) => key.startsWith('clip.'));
  assert.deepEqual(Object.fromEntries(keys), {
    'clip.has_vision_encoder': 'true',
    'clip.projector_type': 'qwen2.5vl_merger',
    'clip.use_silu': 'true',
    'clip.vision.attention.head_count': '2',
    'clip.vision.attention.layer_norm_epsilon': model.metadata['clip.vision.attention.layer_norm_epsilon'],
    'clip.vision.block_count': '1',
    'clip.vision.embedding_length': '32',
    'clip.vision.feed_forward_length': '64',
    'clip.vision.image_mean': '[3 f32]',
    'clip.vision.image_size': '560',
    'clip.vision.image_std': '[3 f32]',
    'clip.vision.n_wa_pattern': '4',
    'clip.vision.patch_size': '4',
    'clip.vision.projection_dim': '48',
  });
});

test('what a tower lacks is said', async (t) => {
  const scratch = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const plan = async (folder) =>
    quantizer.plan(await modelFor(t, quantizer, folder), 'f16', { format: 'gguf', gguf: { mmproj: true } });
  const folder = write(join(scratch, 'seer'));
  await assert.rejects(plan(folder), { code: 'argument-invalid', where: 'preprocessor_config.json: /image_mean' });
  writeFileSync(join(folder, 'preprocessor_config.json'), '{"image_mean": [');
  await assert.rejects(plan(folder), /preprocessor_config\.json: /);
  await assert.rejects(plan(tinyLlama), /no file for images \(mmproj\) can be written for models of type "llama"/);
  const strange = write(join(scratch, 'strange'), { 'visual.blocks.0.gate.weight': [32, 32] });
  processor(strange);
  await assert.rejects(plan(strange), { code: 'format-unsupported', where: 'visual.blocks.0.gate.weight' });
});
