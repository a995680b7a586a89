// Observers that weigh the errors of weights by the activations that meet them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { configOf, quantized, smallModel, whole } from './activation_batches.mjs';

test("weighted observers lower the error of the layer's output", async (t) => {
  const path = smallModel(t);
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, path);
    const inputs = whole
      .filter(({ role }) => role === 'input')
      .map((batch) => {
        // A few loud channels, as activations have them.
        const columns = batch.shape[1];
        return { ...batch, data: batch.data.map((value, i) => ((i % columns) % 7 === 3 ? value * 30 : value)) };
      });
    const int3 = { dtype: 'int3', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
    const noise = async (spec, format, calibration) => {
      const config = configOf({ weight: spec });
      const { tensor, bytes } = await quantized(quantizer, model, config, calibration, format);
      outputs.push(Buffer.from(bytes));
      let sum = 0;
      const original = readTensors(path);
      for (const { layer, data, shape } of inputs) {
        const power = Array.from({ length: shape[1] }, (_, c) =>
          data.reduce((all, value, i) => (i % shape[1] === c ? all + value * value : all), 0),
        );
        const changed = tensor(`${layer}.weight`).data;
        original.get(`${layer}.weight`).data.forEach((value, i) => {
          sum += (value - changed[i]) ** 2 * power[i % shape[1]];
        });
      }
      return sum;
    };
    const search = (observer_cls, weighted, rest = {}) => ({
      ...int3,
      ...rest,
      observer_cls,
      ...(weighted && { observer_options: { weighted: true } }),
    });
    const groups = { qscheme: 'per_group', group_size: 8, ch_axis: -1 };
    for (const [observer, rest] of [['PerChannelMSEObserver'], ['PerGroupMSEObserver', groups]]) {
      const plain = await noise(search(observer, false, rest), 'fake-quantized');
      const weighed = await noise(search(observer, true, rest), 'fake-quantized', inputs);
      assert.ok(weighed < plain, `${observer}: ${weighed} weighted, ${plain} not`);
    }
    // Codes in transposed groups, and values, are chosen by the same scales.
    const int4 = configOf({ weight: { ...search('PerGroupMSEObserver', true, groups), dtype: 'int4' } });
    const [codes, values] = await Promise.all(
      ['quark', 'fake-quantized'].map((format) => quantized(quantizer, model, int4, inputs, format)),
    );
    for (const [i, { error, name }] of codes.report.tensors.entries()) {
      const other = values.report.tensors[i].error;
      if (error) assert.ok(Math.abs(error.mse / other.mse - 1) < 1e-6, `${name}: ${error.mse} and ${other.mse}`);
    }
    const config = configOf({ weight: search('PerChannelMSEObserver', true) });
    const fake = (calibration) => quantized(quantizer, model, config, calibration, 'fake-quantized');
    await assert.rejects(fake(), { code: 'argument-invalid', message: /weighted/ });
    await assert.rejects(fake(inputs.slice(1)), { message: /mlp\.up_proj\.input/ });
    const problems = quantizer.checkConfig(configOf({ weight: search('PerChannelMinMaxObserver', true) }));
    assert.ok(problems.some(({ where }) => where.endsWith('/weight/observer_options')));
  }
  const half = outputs.length / 2;
  for (let i = 0; i < half; ++i) assert.deepEqual(outputs[i], outputs[half + i]);
});
