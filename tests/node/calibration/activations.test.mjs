// Static inputs and outputs of layers, their scales found from batches of activations. Reference: AMD Quark's formulas,
// computed here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeFloats } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { configOf, quantized, reference, rows, smallModel, split, tensorOf, whole } from './activation_batches.mjs';

const f32 = Math.fround;

const range = (data) => [Math.min(0, ...data), Math.max(0, ...data)];

test("static scales and zero points match the formulas, and are stored in each format's form", async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const symmetric = (data, steps) => f32(Math.max(...data.map(Math.abs)) / steps);
  for (const format of ['compressed-tensors', 'quark']) {
    const isQuark = format === 'quark';
    const config = configOf({
      input_tensors: tensorOf('int8'),
      output_tensors: tensorOf('uint8', { symmetric: false }),
    });
    const { tensor, report } = await quantized(quantizer, model, config, whole, format);
    for (const { layer, role, data } of whole) {
      const scale = tensor(`${layer}.${role}_scale`);
      assert.deepEqual(scale.shape, isQuark ? [] : [1]);
      assert.equal(scale.dtype, 'F32');
      assert.equal(scale.offset % 4, 0);
      const [min, max] = range(data);
      const expected = role === 'input' ? symmetric(data, 127.5) : f32(f32(max - min) / 255);
      assert.equal(scale.data[0], expected, `${layer} ${role}`);
      if (role === 'output') {
        const zero = tensor(`${layer}.output_zero_point`);
        const point = Math.round(0 - f32(min / expected));
        assert.equal(zero.dtype, isQuark ? 'U8' : 'I8');
        assert.equal(zero.data[0], isQuark ? point : point - 128);
      } else if (isQuark) {
        assert.deepEqual([...tensor(`${layer}.input_zero_point`).data], [0]);
      }
    }
    const outputs = (await quantizer.plan(model, config, { format })).tensors.find(
      ({ layer }) => layer === 'mlp.up_proj',
    ).outputs;
    assert.ok(!outputs.some(({ name }) => name.includes('input_scale')), 'nothing is promised without calibration');
    assert.deepEqual(
      report.diagnostics.filter(({ code }) => code === 'not-applied'),
      [],
    );
  }
  const fp8 = configOf({ weight: tensorOf('fp8_e4m3'), input_tensors: tensorOf('fp8_e4m3') });
  const inputs = whole.filter(({ role }) => role === 'input');
  for (const format of ['compressed-tensors', 'quark']) {
    const { tensor } = await quantized(quantizer, model, fp8, inputs, format);
    for (const { layer, data } of inputs) assert.equal(tensor(`${layer}.input_scale`).data[0], symmetric(data, 448));
  }
  const channels = configOf({ input_tensors: tensorOf('int8', { qscheme: 'per_channel', ch_axis: -1 }) });
  const { tensor } = await quantized(quantizer, model, channels, inputs, 'quark');
  for (const { layer, data, shape } of inputs) {
    const scale = tensor(`${layer}.input_scale`);
    assert.deepEqual(scale.shape, [shape[1]]);
    for (let i = 0; i < shape[1]; ++i)
      assert.equal(
        scale.data[i],
        symmetric(
          data.filter((_, at) => at % shape[1] === i),
          127.5,
        ),
      );
  }
});

test('the config block of a folder describes what was stored, and the folder reads back', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, join(reference, 'calib_tokens.safetensors'));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const blocks = {};
  for (const format of ['compressed-tensors', 'quark']) {
    const target = join(folder, format);
    const report = await quantizer.quantizeModel(model, config, { target, format, calibration: tokens });
    const codes = report.diagnostics.map(({ code }) => code);
    assert.deepEqual(codes, ['files-left']); // bf16/, another model
    blocks[format] = JSON.parse(readFileSync(join(target, 'config.json'))).quantization_config;
    const back = await modelFor(t, quantizer, target);
    assert.deepEqual((await quantizer.compare(model, back)).diagnostics, []);
  }
  const { input_activations: inputs } = blocks['compressed-tensors'].config_groups.group_0;
  assert.deepEqual([inputs.dynamic, inputs.strategy, inputs.num_bits, inputs.symmetric], [false, 'tensor', 8, true]);
  assert.equal(blocks.quark.global_quant_config.input_tensors.is_dynamic, false);
  for (const block of Object.values(blocks)) quantizer.parseConfig(block);
});

test('the bytes do not depend on batches, order of layers, kind of source or threads', async (t) => {
  const path = smallModel(t);
  const folder = scratchFolder(t);
  const observers = ['PerTensorMinMaxObserver', 'PerTensorPercentileObserver', 'PerTensorMSEObserver', 'TQTObserver'];
  const stored = new Map();
  const numbered = split(whole, 4).map((batch, i, all) => {
    const before = all.slice(0, i).filter(({ layer, role }) => layer === batch.layer && role === batch.role).length;
    return [`${batch.layer}.${batch.role}.${before}`, batch];
  });
  writeFloats(join(folder, 'batches.safetensors'), new Map(numbered.reverse()));
  writeFloats(
    join(folder, 'whole.safetensors'),
    new Map(whole.map((batch) => [`${batch.layer}.${batch.role}`, batch])),
  );
  for (const threads of [0, 1, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, path);
    for (const observer_cls of observers) {
      const spec = tensorOf('int8', { observer_cls });
      const config = configOf({ input_tensors: spec, output_tensors: spec });
      const again = {
        async *[Symbol.asyncIterator]() {
          yield* split(whole, 3);
        },
      };
      const interleaved = split(whole, 5).sort((a, b) => a.data[0] - b.data[0]);
      const sources = [whole, split(whole, 7), interleaved, again, join(folder, 'batches.safetensors')];
      sources.push(new Uint8Array(readFileSync(join(folder, 'whole.safetensors'))));
      sources.push(await modelFor(t, quantizer, join(folder, 'whole.safetensors')));
      for (const calibration of sources) {
        const { bytes } = await quantized(quantizer, model, config, calibration, 'quark');
        if (!stored.has(observer_cls)) stored.set(observer_cls, bytes);
        assert.deepEqual(bytes, stored.get(observer_cls), observer_cls);
      }
    }
    assert.equal(quantizer.liveObjects, 1 + observers.length, 'the models');
  }
  assert.equal(
    new Set([...stored.values()].map((bytes) => Buffer.from(bytes).toString('base64'))).size,
    observers.length,
  );
});

test('Brevitas averages over batches', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8', { observer_cls: 'PerTensorMeanMaxObserver' }) });
  const inputs = whole.filter(({ role }) => role === 'input');
  const halves = split(inputs, rows / 2);
  const { tensor } = await quantized(quantizer, model, config, halves);
  for (const { layer } of inputs) {
    const maxima = halves.filter((half) => half.layer === layer).map(({ data }) => Math.max(...data.map(Math.abs)));
    const mean = (maxima[0] + maxima[1]) / 2;
    const { data } = tensor(`${layer}.input_scale`);
    assert.ok(Math.abs(data[0] - mean / 127.5) < 1e-6 * mean, `${data[0]} for ${maxima}`);
  }
});

test('static scales are left out with a warning without calibration, and where a format cannot store them', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const codes = ({ diagnostics }) => diagnostics.map(({ code }) => code);
  const { report } = await quantized(quantizer, model, config, undefined);
  assert.ok(codes(report).includes('not-applied'));
  const fake = await quantized(quantizer, model, config, whole, 'fake-quantized');
  assert.ok(codes(fake.report).includes('not-applied') && codes(fake.report).includes('calibration-unused'));
  const plain = await quantized(quantizer, model, configOf({}), whole);
  assert.ok(codes(plain.report).includes('calibration-unused'));
  const partly = await quantized(quantizer, model, config, whole);
  assert.match(partly.report.diagnostics.find(({ code }) => code === 'calibration-unused').message, /^2 batches/);
});
