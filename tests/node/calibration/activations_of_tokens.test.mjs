// Static inputs that the built-in forward pass finds on tokens. Reference: the statistics that PyTorch took of tiny-llama
// (tests/files/tiny-llama/README.md).
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';
import { configOf, quantized, reference, tensorOf, weight } from './activation_batches.mjs';

test('tokens give the same ranges that PyTorch found, for the head too', async (t) => {
  const statistics = readTensors(join(reference, 'calib_stats.safetensors'));
  const files = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const tokens = await modelFor(t, quantizer, join(reference, 'calib_tokens.safetensors'));
    const config = { global_quant_config: { weight, input_tensors: tensorOf('int8') } };
    const { bytes, tensor } = await quantized(quantizer, model, config, { tokens });
    files.push(bytes);
    let count = 0;
    for (const [name, { data }] of statistics) {
      if (!name.endsWith('.input_absmax')) continue;
      const expected = Math.max(...data) / 127.5;
      const [scale] = tensor(name.replace('absmax', 'scale')).data;
      assert.ok(Math.abs(scale - expected) < 1e-3 * expected, `${name}: ${scale}, expected ${expected}`);
      count += 1;
    }
    assert.equal(count, 29);
    const output = configOf({ output_tensors: tensorOf('int8') });
    await assert.rejects(quantized(quantizer, model, output, { tokens }), { message: /outputs of model\.layers\.0/ });
  }
  assert.deepEqual(files[0], files[1]);
});

test('static inputs and gptq use the same tokens; smoothed layers have other inputs', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const { data } = readTensors(join(reference, 'calib_tokens.safetensors')).get('input_ids');
  const tokens = { data: Int32Array.from(data.subarray(0, 512)), shape: [2, 256] };
  const config = { ...configOf({ input_tensors: tensorOf('int8') }), algo_config: [{ name: 'gptq' }] };
  const { tensor } = await quantized(quantizer, model, config, { tokens });
  assert.ok(tensor('model.layers.0.mlp.up_proj.input_scale').data[0] > 0);
  const smooth = { ...config, pre_quant_opt_config: [{ name: 'smoothquant' }] };
  const { report } = await quantized(quantizer, model, smooth, { tokens });
  assert.ok(report.diagnostics.some(({ code }) => code === 'not-applied'));
});
