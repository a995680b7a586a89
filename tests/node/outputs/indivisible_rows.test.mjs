// Rows that groups, blocks or words do not divide: what is written instead is read back as it was meant.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

/** Quantizes one layer, `a`, of these rows and columns, and reads it back; {header, reread: header of the values, exclude}. */
async function quantizedAndRead(t, [rows, columns], weight, format, more = {}) {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const source = join(folder, 'model');
  mkdirSync(source);
  writeFileSync(join(source, 'config.json'), JSON.stringify({ hidden_size: columns, ...more.model }));
  const tensors = { 'a.weight': { dtype: 'F32', shape: [rows, columns], data: noise(rows * columns) } };
  writeFileSync(join(source, 'model.safetensors'), safetensors(tensors));
  const [target, values] = [join(folder, 'out'), join(folder, 'values')];
  const config = { global_quant_config: { weight }, indivisible_groups: more.groups ?? 'fallback' };
  const model = await modelFor(t, quantizer, source);
  await quantizer.quantizeModel(model, config, { target, format });
  const plain = { global_quant_config: { weight: { dtype: 'float16' } } };
  await quantizer.quantizeModel(await modelFor(t, quantizer, target), plain, {
    target: values,
    format: 'fake-quantized',
  });
  const headerOf = (path) => parsed(new Uint8Array(readFileSync(join(path, 'model.safetensors')))).header;
  const { exclude } = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).quantization_config;
  return { header: headerOf(target), reread: headerOf(values), exclude };
}

for (const dtype of ['mx6', 'mx9', 'bfp16'])
  test(`${dtype}: rows that blocks do not divide are refused, because channels are no fallback`, async (t) => {
    const { reread } = await quantizedAndRead(t, [7, 96], { dtype }, 'quark');
    assert.deepEqual(reread['a.weight'].shape, [7, 96]);
    for (const groups of ['fallback', 'error'])
      await assert.rejects(quantizedAndRead(t, [7, 90], { dtype }, 'quark', { groups }), {
        code: 'format-unsupported',
        message: /rows of 90 elements, which blocks of (8|16) do not divide/,
      });
  });

test('e4m3 scales and MX scales of integers stay per group: one group per row if groups do not divide it', async (t) => {
  const nvfp4 = { dtype: 'fp4', qscheme: 'per_group', ch_axis: -1, group_size: 16, scale_format: 'e4m3' };
  for (const weight of [nvfp4, { dtype: 'mx', mx_element_dtype: 'int8' }]) {
    const { header, reread } = await quantizedAndRead(t, [8, 56], weight, 'quark');
    assert.deepEqual(header['a.weight_scale'].shape, [8, 1]);
    assert.deepEqual(reread['a.weight'].shape, [8, 56]);
  }
});

test('quark: 4-bit rows that do not fill words are stored in groups, or refused', async (t) => {
  const group = { dtype: 'uint4', qscheme: 'per_group', ch_axis: -1, group_size: 8, symmetric: false };
  const { reread } = await quantizedAndRead(t, [16, 20], group, 'quark');
  assert.deepEqual(reread['a.weight'].shape, [16, 20]);
  for (const qscheme of ['per_channel', 'per_tensor']) {
    const weight = { dtype: 'int4', qscheme, symmetric: true, ...(qscheme === 'per_channel' && { ch_axis: 0 }) };
    await assert.rejects(quantizedAndRead(t, [16, 20], weight, 'quark'), {
      code: 'format-unsupported',
      message: /rows of 20 elements, which do not fill 32-bit words/,
    });
    const full = await quantizedAndRead(t, [13, 24], weight, 'quark');
    assert.deepEqual(full.reread['a.weight'].shape, [13, 24]);
  }
});

test('gptq: short rows of 4 bits are not mistaken for rows of 3 bits', async (t) => {
  for (const columns of [8, 16, 24, 40]) {
    const weight = { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 8, symmetric: true };
    const { reread } = await quantizedAndRead(t, [8, columns], weight, 'gptq');
    assert.deepEqual(reread['a.weight'].shape, [8, columns]);
  }
});

test('a tied head is excluded for a class that config.json does not name', async (t) => {
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const tied = await quantizedAndRead(t, [8, 16], weight, 'quark', { model: { tie_word_embeddings: true } });
  assert.deepEqual(tied.exclude, ['lm_head']);
  assert.deepEqual((await quantizedAndRead(t, [8, 16], weight, 'quark')).exclude, []);
});
