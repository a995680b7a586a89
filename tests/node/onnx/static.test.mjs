// ONNX with calibration: static inputs and outputs as pairs of QuantizeLinear and DequantizeLinear, weighted observers of
// weights. Runtimes are in tests/interop/onnx/onnx.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor } from '../scratch.mjs';
import { convolutions, noise, twoLayers } from './model.mjs';

const uint8 = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false };
const int8 = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true, is_dynamic: false };
const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };

const named = (tensors, name) => tensors.find((tensor) => tensor.name === name);
const batch = (layer, role, shape, seed) => ({
  layer,
  role,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
  shape,
});
const batches = [
  batch('mlp.up_proj', 'input', [8, 64], 21),
  batch('mlp.up_proj', 'output', [8, 96], 22),
  batch('down', 'input', [8, 96], 23),
  batch('down', 'output', [8, 32], 24),
];

async function written(t, quantizer, source, config, options = {}) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, ...options });
  const bytes = out.bytes();
  return { bytes, report, model: await modelFor(t, quantizer, bytes) };
}

/** Scale and zero point of a value, out of the file. */
function pairOf(bytes, { tensors }, value) {
  const [scale, point] = ['scale', 'zero_point'].map((suffix) => named(tensors, `${value}_${suffix}`));
  return {
    scale: new Float32Array(bytes.slice(scale.begin, scale.end).buffer)[0],
    zeroPoint: (point.dtype === 'I8' ? Int8Array : Uint8Array).from(bytes.subarray(point.begin, point.end))[0],
  };
}

test("static inputs and outputs hold the ranges that their spec's observer finds", async (t) => {
  const quantizer = await quantizerFor(t);
  const config = { global_quant_config: { weight, input_tensors: uint8, output_tensors: int8 } };
  const { bytes, report, model } = await written(t, quantizer, twoLayers().bytes, config, { calibration: batches });
  assert.match(
    named(report.tensors, 'up').reason.text,
    /as DequantizeLinear; inputs static uint8; outputs static int8/,
  );
  assert.ok(report.diagnostics.every(({ severity }) => severity === 'note'));
  for (const [value, spec, { data, shape }] of [
    ['e', uint8, batches[0]],
    ['h', int8, batches[1]],
    ['r', uint8, batches[2]],
    ['y', int8, batches[3]],
  ]) {
    const observer = quantizer.createObserver(spec);
    observer.update({ data, shape });
    const found = observer.finish();
    assert.deepEqual(
      pairOf(bytes, model, value),
      { scale: found.scale[0], zeroPoint: found.zeroPoint[0] },
      `${value} ${JSON.stringify(found)}`,
    );
  }
  const compared = await quantizer.compare(await modelFor(t, quantizer, twoLayers().bytes), model);
  assert.equal(named(compared.tensors, 'up').error.sqnrDb, named(report.tensors, 'up').error.sqnrDb);
});

test('a layer without data is an error; without calibration the plan says that inputs stay', async (t) => {
  const quantizer = await quantizerFor(t);
  const config = { global_quant_config: { weight, input_tensors: uint8 } };
  await assert.rejects(written(t, quantizer, twoLayers().bytes, config, { calibration: batches.slice(0, 2) }), {
    code: 'argument-invalid',
    message: /there is no data for down\.input/,
  });
  const plan = await quantizer.plan(await modelFor(t, quantizer, twoLayers().bytes), config);
  assert.ok(plan.diagnostics.some(({ code, message }) => code === 'not-applied' && /from calibration/.test(message)));
});

test('convolutions, and activations computed on demand', async (t) => {
  const quantizer = await quantizerFor(t);
  const asked = [];
  const calibration = {
    [Symbol.asyncIterator]() {
      throw new Error('only what is needed is to be read');
    },
    only: (wanted) => {
      asked.push(...wanted.map(({ layer, role }) => `${layer}.${role}`));
      return [batch('conv', 'input', [1, 3, 12, 12], 31)];
    },
  };
  const config = {
    global_quant_config: { weight },
    layer_type_quant_config: { Conv2d: { weight, input_tensors: uint8 } },
  };
  const { report, model } = await written(t, quantizer, convolutions(), config, { calibration });
  assert.deepEqual(asked, ['conv.input']);
  assert.ok(named(model.tensors, 'x_zero_point'));
  assert.doesNotMatch(named(report.tensors, 'up.weight').reason.text, /static/);
});

test('weighted observers of MatMulNBits weigh by the input channels', async (t) => {
  const quantizer = await quantizerFor(t);
  const configOf = (group_size, weighted) => ({
    global_quant_config: {
      weight: {
        dtype: 'int4',
        qscheme: 'per_group',
        group_size,
        observer_cls: 'PerGroupMSEObserver',
        observer_options: { weighted },
      },
    },
  });
  const inputs = batches.filter(({ role }) => role === 'input');
  for (const { data } of inputs) for (const [i, x] of data.entries()) data[i] = x * (i % 32 === 5 ? 20 : 1);
  const { bytes } = twoLayers();
  // Groups of 64 do not divide the 96 inputs of the second layer.
  for (const group of [32, 64]) {
    const plain = await written(t, quantizer, bytes, configOf(group, false));
    const weighted = await written(t, quantizer, bytes, configOf(group, true), { calibration: inputs });
    assert.equal(plain.bytes.length, weighted.bytes.length);
    // Few channels come out better, at the others' expense.
    for (const name of ['up', 'down.weight']) {
      const [before, after] = [plain, weighted].map(({ report }) => named(report.tensors, name).error.mse);
      assert.ok(after > before, `${name}: ${before} ${after}`);
    }
  }
  await assert.rejects(written(t, quantizer, bytes, configOf(32, true)), /weighted observers need calibration/);
});
