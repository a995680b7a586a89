// What people write in configs of their own, and the hint that mends it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createQuantizer } from 'wasmquant';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const withWeight = (weight) => ({
  global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 128, ch_axis: -1, ...weight } },
});

test('each mistake has one error, whose hint says what to write', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [config, code, hint] of [
    [{ dtype: 'int8' }, 'key-unknown', /belongs under "global_quant_config"/],
    [{ load_in_4bit: true }, 'key-unknown', /bitsandbytes.*int4_wo_32/],
    [{ ...withWeight(), exclude: 'lm_head' }, 'type-invalid', /write \["lm_head"\]/],
    [withWeight({ group_size: '128' }), 'type-invalid', /write 128 without quotes/],
    [withWeight({ symmetric: 'true' }), 'type-invalid', /write true without quotes/],
    [withWeight({ dtype: 'nf4' }), 'value-unknown', /NF4 can be read but not written/],
    [{ ...withWeight(), algo_config: [{ name: 'gptq', damp_percent: 10 }] }, 'value-invalid', /0\.01 is usual/],
  ]) {
    const found = quantizer.checkConfig(config).filter(({ severity }) => severity === 'error');
    assert.deepEqual(
      found.map((each) => each.code),
      [code],
      JSON.stringify(config),
    );
    assert.match(found[0].hint, hint, JSON.stringify(config));
  }
  const [gptq] = quantizer.checkConfig({ quant_method: 'gptq', bits: 4, group_size: 128 });
  assert.match(gptq.hint, /algo_config.*gptq.*calibration/);
});

test('the types allow only integers as token ids', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = quantizer.languageModel(await modelFor(t, quantizer, tinyLlama));
  const data = Float32Array.of(1, 2, 3);
  for (const tokens of [{ data, shape: [1, 3] }, { rows: [data] }])
    await assert.rejects(model.evaluate({ tokens }), { code: 'argument-invalid', message: /Float32Array.*Int32Array/ });
});

test('a model is printed in a line, and a quantizer has close()', async (t) => {
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  assert.match(inspect(model), /^Model \{ format: 'safetensors', .* tensors: 39, files: 1 \}$/);
  await quantizer.close();
  assert.throws(() => quantizer.presets(), { code: 'state-invalid' });
});
