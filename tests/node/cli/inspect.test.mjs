// inspect: text and JSON of real files, collapsing of like layers, broken files.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { cli, cliJson, scratch, tinyLlama, tinyLlamaFile, writeZeros } from './process.mjs';

test('a sharded folder: like layers on one line, totals', async () => {
  const { code, stdout, stderr } = await cli(['inspect', tinyLlama]);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  assert.match(stdout, /safetensors, 3 files, 5\.15 MB, LlamaForCausalLM/);
  assert.match(
    stdout,
    /^model\.layers\.\{0\.\.3\}\.self_attn\.q_proj\.weight +4 × +Linear +BF16 +256 × 256 +262 k +524 kB$/m,
  );
  assert.match(stdout, /^39 tensors, 2\.57 M parameters, 5\.15 MB +\(BF16 5\.15 MB\)$/m);
  assert.doesNotMatch(stdout, /layers\.2\.self_attn/);
});

test('--all has a line for every tensor, with its file', async () => {
  const { code, stdout } = await cli(['inspect', tinyLlama, '--all']);
  assert.equal(code, 0);
  assert.match(stdout, /^model\.layers\.2\.self_attn\.q_proj\.weight .*model-00002-of-00003\.safetensors$/m);
  assert.equal(stdout.match(/\.weight /g).length, 39);
});

test('folder, index file and --json agree', async () => {
  const folder = await cliJson(['inspect', tinyLlama]);
  assert.equal(folder.code, 0);
  assert.equal(folder.document.format, 'safetensors');
  assert.deepEqual(folder.document.totals, { tensors: 39, parameters: 2_574_592, bytes: 5_149_184 });
  assert.equal(folder.document.files.length, 3);
  const lmHead = folder.document.tensors.find((tensor) => tensor.name === 'lm_head.weight');
  assert.deepEqual([lmHead.dtype, lmHead.shape, lmHead.layerType], ['BF16', [288, 256], 'Linear']);
  const index = await cliJson(['inspect', join(tinyLlama, 'model.safetensors.index.json')]);
  assert.deepEqual(index.document.tensors, folder.document.tensors);
});

test('a single file', async () => {
  const { code, document } = await cliJson(['inspect', tinyLlamaFile]);
  assert.equal(code, 0);
  assert.equal(document.totals.bytes, 2 * 5_149_184);
});

test('only complete layers collapse into one line', async (t) => {
  const tensors = {};
  for (const layer of [0, 2, 4, 6]) {
    for (const expert of [0, 1, 2]) tensors[`layers.${layer}.experts.${expert}.w1.weight`] = [8, 16];
  }
  delete tensors['layers.6.experts.2.w1.weight'];
  for (const layer of [0, 1, 3]) tensors[`blocks.${layer}.weight`] = layer === 3 ? [4, 4] : [8, 8];
  const { stdout } = await cli(['inspect', writeZeros(join(scratch(t), 'moe.safetensors'), tensors)]);
  const names = stdout.match(/^\S+\.weight/gm).sort();
  assert.deepEqual(names, [
    'blocks.3.weight',
    'blocks.{0,1}.weight',
    'layers.0.experts.{0..2}.w1.weight',
    'layers.2.experts.{0..2}.w1.weight',
    'layers.4.experts.{0..2}.w1.weight',
    'layers.6.experts.{0,1}.w1.weight',
  ]);
});

test('broken files: message and place, exit 1, JSON too', async (t) => {
  const path = join(scratch(t), 'broken.safetensors');
  writeFileSync(path, Buffer.concat([Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]), Buffer.from('{}')]));
  const text = await cli(['inspect', path]);
  assert.equal(text.code, 1);
  assert.equal(text.stdout, '');
  assert.match(text.stderr, /^error: /);
  const { code, stderr, document } = await cliJson(['inspect', path]);
  assert.equal(code, 1);
  assert.equal(stderr, '');
  assert.match(document.error.code, /^file-/);
});
