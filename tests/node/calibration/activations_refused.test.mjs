// Activations that do not fit, and runs that end early: refused by name, nothing written, streams closed.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeFloats } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { configOf, quantized, smallModel, split, tensorOf, whole } from './activation_batches.mjs';

test('bad data is refused by the name of its layer, and nothing is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const folder = scratchFolder(t);
  const config = configOf({ input_tensors: tensorOf('int8') });
  const refused = async (calibration, expected, asked = config) => {
    const options = { target: join(folder, 'out'), calibration };
    await assert.rejects(quantizer.quantizeModel(model, asked, options), expected);
    assert.ok(!readdirSync(folder).includes('out'));
  };
  const [up, , down] = whole;
  await refused([up], { code: 'argument-invalid', message: /there is no data for mlp\.down_proj\.input/ });
  await refused([], { message: /mlp\.up_proj\.input/ });
  await refused([], { message: /mlp\.down_proj\.input/ });
  await refused([{ ...up, layer: 'mlp.up_pro' }], {
    code: 'argument-invalid',
    where: 'mlp.up_pro',
    message: /mlp\.up_proj/,
  });
  const wrong = { ...down, data: new Float32Array(46), shape: [2, 23] };
  await refused([up, wrong], { code: 'shape-mismatch', where: 'mlp.down_proj.input', message: /23 features.*24/ });
  const empty = { ...up, data: new Float32Array(0), shape: [0, 16] };
  await refused([empty], { code: 'shape-mismatch', where: 'mlp.up_proj.input', message: /empty/ });
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const bad = { ...up, data: Float32Array.from(up.data).fill(value, 21, 22) };
    await refused([down, bad], {
      code: 'value-not-finite',
      where: 'mlp.up_proj.input',
      message: /element 21 of batch 0/,
    });
  }
  const short = { ...up, shape: [3, 16] };
  await refused([short], { code: 'shape-mismatch', where: 'mlp.up_proj.input' });
  await refused([{ ...up, data: [1, 2] }], { code: 'argument-invalid', where: 'mlp.up_proj.input' });
  await refused([{ layer: 'mlp.up_proj', role: 'weight' }], { code: 'argument-invalid', where: 'calibration' });
  await refused([null], { code: 'argument-invalid', where: 'calibration' });
  const integers = join(folder, 'named.safetensors');
  writeFloats(
    integers,
    new Map([
      ['mlp.up_proj.input', up],
      ['mlp.up_proj.weights', up],
    ]),
  );
  await refused(integers, { code: 'argument-invalid', where: 'mlp.up_proj.weights' });

  const percentile = configOf({ input_tensors: tensorOf('int8', { observer_cls: 'PerTensorPercentileObserver' }) });
  const once = (function* () {
    yield* whole;
  })();
  await refused(once, { code: 'argument-invalid', message: /PerTensorPercentileObserver of mlp\..*twice/ }, percentile);
  let pass = 0;
  const changing = { [Symbol.iterator]: () => (pass++ < 2 ? whole : split(whole, 7).slice(1))[Symbol.iterator]() };
  await refused(changing, { code: 'state-invalid', message: /second/ }, percentile);
  const group = tensorOf('int16', {});
  await refused(whole, { code: 'format-unsupported', message: /int16/ }, configOf({ input_tensors: group }));
  const columns = configOf({ input_tensors: tensorOf('int8', { qscheme: 'per_channel', ch_axis: 0 }) });
  await assert.rejects(quantized(quantizer, model, columns, whole, 'quark'), {
    code: 'shape-mismatch',
    message: /ch_axis/,
  });
  assert.equal(quantizer.liveObjects, 1);
});

test('streams and generators are closed when a run fails or is aborted; half floats are accepted', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const inputs = whole.filter(({ role }) => role === 'input');
  const streamed = await quantized(quantizer, model, config, ReadableStream.from(inputs));
  assert.deepEqual(streamed.bytes, (await quantized(quantizer, model, config, new Set(inputs))).bytes);
  const bf16 = inputs.map(({ data, ...rest }) => {
    const words = new Uint32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    return { ...rest, dtype: 'BF16', data: Uint16Array.from(words, (word) => word >>> 16) };
  });
  const widened = bf16.map(({ data, dtype: _, ...rest }) => {
    const words = Uint32Array.from(data, (half) => half << 16);
    return { ...rest, data: new Float32Array(words.buffer) };
  });
  const [halves, floats32] = [
    await quantized(quantizer, model, config, bf16),
    await quantized(quantizer, model, config, widened),
  ];
  assert.deepEqual(halves.bytes, floats32.bytes);

  let closed = 0;
  const guarded = async function* (batches, stop) {
    try {
      yield* batches;
      stop?.abort(new Error('enough'));
      yield inputs[0];
    } finally {
      closed += 1;
    }
  };
  const folder = scratchFolder(t);
  const failing = guarded([inputs[0], { ...inputs[1], layer: 'nothing' }]);
  await assert.rejects(quantizer.quantizeModel(model, config, { target: join(folder, 'out'), calibration: failing }));
  assert.equal(closed, 1);
  const stop = new AbortController();
  const options = { target: join(folder, 'out'), calibration: guarded(inputs, stop), signal: stop.signal };
  await assert.rejects(quantizer.quantizeModel(model, config, options), { message: 'enough' });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(closed, 2);
  assert.deepEqual(readdirSync(folder), []);
  assert.equal(quantizer.liveObjects, 1);
});
