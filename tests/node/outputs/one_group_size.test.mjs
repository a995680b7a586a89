// Presets give all layers one group size where that is all that loaders of the format read: the largest that fits every row.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

/** A model whose down_proj has rows of `columns`, all others of 256. */
function modelOf(columns) {
  const weights = { gate_proj: [columns, 256], up_proj: [columns, 256], down_proj: [256, columns] };
  const tensors = Object.entries(weights).map(([name, [rows, length]]) => [
    `model.layers.0.mlp.${name}.weight`,
    { dtype: 'F32', shape: [rows, length], data: noise(rows * length) },
  ]);
  return safetensors(Object.fromEntries(tensors));
}

const sizesOf = (plan) => plan.tensors.map(({ spec }) => spec?.group_size ?? null);
const notesOf = (plan) =>
  plan.diagnostics.filter(({ code }) => code === 'group-fallback').map(({ message }) => message);

test('a preset of awq, gptq and zero points in words gets the largest group size that divides all rows', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [columns, expected] of [
    [512, 128],
    [576, 64],
    [608, 32],
  ]) {
    const model = await quantizer.open(modelOf(columns));
    for (const [format, preset] of [
      ['awq', 'uint4_wo_128'],
      ['gptq', 'uint4_wo_128'],
      ['gptq', 'int4_wo_128'],
      ['compressed-tensors', 'uint4_wo_128'],
    ]) {
      const plan = await quantizer.plan(model, preset, { format });
      assert.deepEqual(sizesOf(plan), [expected, expected, expected], `${format} ${preset}`);
      const notes = notesOf(plan).join('\n');
      if (expected === 128) assert.equal(notes, '');
      else {
        assert.match(notes, new RegExp(`group size 128 does not divide ${columns}; group size ${expected} is used`));
        assert.match(notes, new RegExp(`first of 2 tensors that also get groups of ${expected}: every loader`));
      }
    }
    const mixed = await quantizer.plan(model, 'int4_wo_128', { format: 'compressed-tensors' });
    assert.deepEqual(sizesOf(mixed), [128, 128, expected], 'formats that hold several sizes keep them');
  }
});

test('sizes that a config names are not changed', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await quantizer.open(modelOf(576));
  const weight = (group_size) => ({ dtype: 'uint4', qscheme: 'per_group', ch_axis: -1, group_size, symmetric: false });
  const config = {
    global_quant_config: { weight: weight(128) },
    layer_quant_config: { '*.down_proj': { weight: weight(64) } },
  };
  await assert.rejects(() => quantizer.plan(model, config, { format: 'awq' }), /awq has one group size for all layers/);
  assert.deepEqual(sizesOf(await quantizer.plan(model, config, { format: 'gptq' })), [128, 128, 64]);
});
