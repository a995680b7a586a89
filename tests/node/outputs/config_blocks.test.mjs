// The block of a written file and the config converted to its dialect say the same, for every spec that the format holds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const tensor = { dtype: 'F32', shape: [64, 128], data: noise(64 * 128, 1) };
const model = safetensors({ 'model.layers.0.mlp.down_proj.weight': tensor, 'lm_head.weight': tensor });

const schemes = [
  { qscheme: 'per_group', ch_axis: -1, group_size: 32 },
  { qscheme: 'per_group', ch_axis: -1, group_size: -1 },
  { qscheme: 'per_channel', ch_axis: 0 },
  { qscheme: 'per_tensor' },
  { qscheme: 'per_block', block_size: [16, 16] },
];
const dtypes = [2, 3, 4, 8].flatMap((bits) => [`int${bits}`, `uint${bits}`]).concat('fp8_e4m3', 'fp4', 'mx');
const weights = dtypes.flatMap((dtype) =>
  schemes.flatMap((scheme) => [true, false].map((symmetric) => ({ dtype, symmetric, ...scheme }))),
);
const inputs = [null, { dtype: 'int8', qscheme: 'per_tensor', is_dynamic: true }];

/** What is compared: all but the lists of layers, which one side knows and the other has as patterns. */
const compared = {
  gptq: ['quant_method', 'bits', 'group_size', 'sym', 'desc_act', 'lm_head', 'checkpoint_format', 'pack_dtype'],
  awq: ['quant_method', 'bits', 'group_size', 'zero_point', 'version', 'lm_head'],
};
const said = (block, format) =>
  compared[format]
    ? Object.fromEntries(compared[format].map((key) => [key, block[key] ?? null]))
    : ['weights', 'input_activations', 'output_activations'].map((key) => block.config_groups.group_0[key]);

test('a file and a converted config describe every spec in the same words', async (t) => {
  const quantizer = await quantizerFor(t);
  const opened = await modelFor(t, quantizer, model);
  const counts = {};
  for (const format of ['compressed-tensors', 'gptq', 'awq'])
    for (const weight of weights)
      for (const input of format === 'compressed-tensors' ? inputs : [null]) {
        const config = {
          global_quant_config: { weight, ...(input && { input_tensors: input }) },
          exclude: ['lm_head'],
        };
        let block;
        try {
          block = (await quantizer.plan(opened, config, { format })).quantizationConfig;
        } catch {
          continue; // the config or the format refuses this spec
        }
        const { config: converted, losses } = quantizer.convertConfig(config, format);
        if (losses.some(({ severity }) => severity === 'warning')) continue; // the dialect says it another way, which is named
        const what = `${format}: ${JSON.stringify(config.global_quant_config)}`;
        assert.deepEqual(said(block, format), said(converted, format), what);
        counts[format] = (counts[format] ?? 0) + 1;
      }
  for (const [format, least] of Object.entries({ 'compressed-tensors': 72, gptq: 16, awq: 2 }))
    assert.ok(counts[format] >= least, `${format}: ${counts[format]} specs compared`);
});
