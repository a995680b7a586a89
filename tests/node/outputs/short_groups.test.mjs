// Groups that do not divide a row: the last one is short, or the only one is wider than the row.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { firstBlocks } from '../tiny_llama.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const floats = (dtype, group_size) => ({ dtype, qscheme: 'per_group', ch_axis: -1, group_size });
const tokens = { data: Int32Array.from({ length: 64 }, (_, i) => (i * 37) % 200), shape: [2, 32] };

test('an algorithm treats a group wider than the row like the whole row', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, firstBlocks(t, 1));
  const folder = scratchFolder(t);
  for (const name of ['gptq', 'gptaq', 'qronos', 'gpfq', 'awq']) {
    const bytes = [];
    for (const size of [-1, 4096]) {
      const config = { global_quant_config: { weight: floats('fp8_e4m3', size) }, algo_config: [{ name }] };
      const target = join(folder, `${name}${size}`);
      await quantizer.quantizeModel(model, config, { target, format: 'fake-quantized', calibration: { tokens } });
      bytes.push(readFileSync(join(target, 'model.safetensors')));
    }
    assert.ok(bytes[0].equals(bytes[1]), name);
  }
});

test('integers whose last group is short are written as values, and refused as codes before anything is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  for (const [rows, columns, size] of [
    [4, 6, 4],
    [8, 40, 32],
    [64, 72, 64],
    [16, 40, 1000],
  ]) {
    const layer = 'model.layers.0.mlp.up_proj';
    const data = noise(rows * columns, rows);
    const source = join(folder, 'model.safetensors');
    writeFileSync(source, safetensors({ [`${layer}.weight`]: { dtype: 'F32', shape: [rows, columns], data } }));
    const model = await modelFor(t, quantizer, source);
    for (const [dtype, symmetric] of [
      ['int4', true],
      ['uint4', false],
      ['int8', true],
      ['int2', true],
    ]) {
      const weight = { ...floats(dtype, size), symmetric, grid: { pads_groups: true } };
      const config = { global_quant_config: { weight } };
      for (const format of ['quark', 'compressed-tensors', 'gptq', 'awq']) {
        await assert.rejects(() => quantizer.plan(model, config, { format }), {
          code: format === 'quark' ? 'group-size-invalid' : 'format-unsupported',
          message: new RegExp(`${layer}.weight`),
        });
      }
      const target = join(folder, 'out');
      await quantizer.quantizeModel(model, config, { target, format: 'fake-quantized', overwrite: true });
      const values = new Float32Array(
        parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors')))).data(`${layer}.weight`).buffer,
      );
      const wanted = quantizer.fakeQuantize({ data, shape: [rows, columns] }, weight);
      assert.deepEqual([...values], [...wanted], `${dtype} [${rows}, ${columns}] in groups of ${size}`);
    }
  }
});
