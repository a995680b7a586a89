// A closer look at single tensors: where values lie before and after, and what another config would do to a few of them.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const name = 'model.layers.1.self_attn.q_proj.weight';

test('a distribution counts the values in the files, with any number of threads', async (t) => {
  const out = join(scratchFolder(t), 'out');
  const results = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    if (threads === 0) await quantizer.quantizeModel(model, 'int4_wo_128', { target: out, format: 'fake-quantized' });
    const quantized = await modelFor(t, quantizer, out);
    results.push(await quantizer.distribution(model, quantized, name, { bins: 50 }));
  }
  const [found, again] = results;
  assert.deepEqual(found, again);

  const [x, y] = [join(tinyLlama, 'model.safetensors'), join(out, 'model.safetensors')].map(
    (path) => readTensors(path).get(name).data,
  );
  const both = [...x, ...y];
  assert.equal(
    found.low,
    both.reduce((low, value) => Math.min(low, value)),
  );
  assert.equal(
    found.high,
    both.reduce((high, value) => Math.max(high, value)),
  );
  assert.equal(found.count, x.length);
  const histogram = (values) => {
    const bins = new Array(50).fill(0);
    for (const value of values) {
      bins[Math.min(49, Math.floor(((value - found.low) * 50) / (found.high - found.low)))] += 1;
    }
    return bins;
  };
  const differences = (left, right) => left.reduce((sum, value, bin) => sum + Math.abs(value - right[bin]), 0);
  // A value on the edge of two bins may be rounded into either.
  assert.ok(differences(found.original, histogram(x)) <= 4);
  assert.ok(differences(found.quantized, histogram(y)) <= 4);
  assert.equal(found.channelSqnrDb.length, 256);
  for (const channel of [0, 17, 255]) {
    let [signal, noise, low, high] = [0, 0, Infinity, -Infinity];
    for (let i = 256 * channel; i < 256 * (channel + 1); ++i) {
      signal += x[i] ** 2;
      noise += (x[i] - y[i]) ** 2;
      low = Math.min(low, y[i]);
      high = Math.max(high, y[i]);
    }
    assert.ok(Math.abs(found.channelSqnrDb[channel] - 10 * Math.log10(signal / noise)) < 1e-9);
    assert.ok(low < high);
  }
});

test('a tensor with one scale shows its grid, and an unchanged tensor shows no error', async (t) => {
  const out = join(scratchFolder(t), 'out');
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const config = { global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_tensor', symmetric: true } } };
  await quantizer.quantizeModel(model, { ...config, exclude: ['lm_head'] }, { target: out, format: 'fake-quantized' });
  const quantized = await modelFor(t, quantizer, out);
  const { grid } = await quantizer.distribution(model, quantized, name);
  assert.ok(grid.length > 2 && grid.length <= 16);
  const steps = grid.slice(1).map((value, i) => value - grid[i]);
  const step = Math.min(...steps);
  for (const between of steps) assert.ok(Math.abs(between / step - Math.round(between / step)) < 1e-3);
  const same = await quantizer.distribution(model, quantized, 'lm_head.weight');
  assert.ok(same.channelSqnrDb.every((value) => value === Infinity));
  assert.equal(same.beyond, 0);
  assert.deepEqual(same.original, same.quantized);
  await assert.rejects(quantizer.distribution(model, quantized, 'no.weight'), { code: 'tensor-missing' });
  await assert.rejects(quantizer.distribution(model, quantized, name, { bins: 0 }), { code: 'argument-invalid' });
});

test('a preview gives the errors of a run, and writes nothing', async (t) => {
  const out = join(scratchFolder(t), 'out');
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    for (const preset of ['int4_wo_128', 'int8', 'mxfp4']) {
      const report = await quantizer.quantizeModel(model, preset, { target: out, overwrite: true });
      const wanted = [name, 'lm_head.weight'];
      const tried = await quantizer.preview(model, preset, wanted);
      assert.deepEqual(
        tried,
        wanted.map((wantedName) => report.tensors.find((tensor) => tensor.name === wantedName)),
      );
      assert.equal(tried[1].error, null);
    }
    await assert.rejects(quantizer.preview(model, 'int8', ['no.weight']), { code: 'tensor-missing' });
  }
});
