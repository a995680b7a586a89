// Batch norms of ONNX models folded into the layers before them, through files. Runtimes are in tests/interop/onnx/onnx.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor } from '../scratch.mjs';
import { graph, model as modelBytes, node, noise, tensor } from './model.mjs';

const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const configOf = (rest) => ({
  global_quant_config: { weight: int8 },
  pre_quant_opt_config: [{ name: 'merge_batch_norm' }],
  ...rest,
});
const positive = (count, seed) => noise(count, seed).map((value) => value + 1);

/** x -> Conv -> BatchNormalization -> Relu; `external`: where the norm's values lie. */
function network(external) {
  const values = ['scale', 'B', 'mean', 'var'];
  let offset = 0;
  const chunks = [];
  const vectors = values.map((name, i) => {
    const data = positive(8, 20 + i);
    const place = external && { location: external, offset };
    offset += data.byteLength;
    chunks.push(Buffer.from(data.buffer));
    return tensor(`bn.${name}`, 'F32', [8], data, { external: place });
  });
  const bytes = modelBytes(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
        node('BatchNormalization', ['c', ...values.map((name) => `bn.${name}`)], ['n'], {
          name: '/bn/BatchNormalization',
        }),
        node('Relu', ['n'], ['y']),
      ],
      tensors: [tensor('conv.weight', 'F32', [8, 4, 3, 3], noise(288, 19)), ...vectors],
      inputs: [['x', 'F32', [1, 4, 12, 12]]],
      outputs: [['y', 'F32', [1, 8, 10, 10]]],
    }),
  );
  return { bytes, data: Buffer.concat(chunks) };
}

async function written(t, quantizer, source, config) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, config, { target: out.stream });
  return { bytes: out.bytes(), report };
}
const floats = (bytes, { begin, end }) => new Float32Array(bytes.slice(begin, end).buffer);
const named = (tensors, name) => tensors.find((each) => each.name === name);

test('weights, bias and report of a folded norm do not depend on threads', async (t) => {
  const { bytes } = network();
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const { bytes: out, report } = await written(t, quantizer, bytes, configOf({ exclude: ['*'] }));
    outputs.push(out);
    const note = report.diagnostics.find(({ code }) => code === 'norms-folded');
    assert.match(note.message, /^1 of 1 batch norms/);
    const row = named(report.tensors, 'conv.weight');
    assert.equal(row.action, 'copy');
    assert.match(row.reason.text, /the batch norm \/bn\/BatchNormalization is folded into it/);
    assert.equal(named(report.tensors, 'bn.var').bytesAfter, 0);
    const { tensors } = await modelFor(t, quantizer, out);
    assert.deepEqual(tensors.map(({ name }) => name).sort(), ['conv.weight', 'conv.weight_folded_bias']);
    const [gamma, beta, mean, variance] = [20, 21, 22, 23].map((seed) => positive(8, seed));
    const weight = floats(out, named(tensors, 'conv.weight'));
    const bias = floats(out, named(tensors, 'conv.weight_folded_bias'));
    for (const [i, value] of noise(288, 19).entries()) {
      const channel = Math.floor(i / 36);
      const factor = gamma[channel] / Math.sqrt(variance[channel] + 1e-5);
      assert.ok(Math.abs(weight[i] - value * factor) < 1e-6);
      assert.ok(Math.abs(bias[channel] - (beta[channel] - mean[channel] * factor)) < 1e-5);
    }
  }
  assert.deepEqual(outputs[1], outputs[0]);
});

test('a folded weight as int8: plan, preview and run agree', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const { bytes } = network();
  const { report } = await written(t, quantizer, bytes, configOf());
  const row = named(report.tensors, 'conv.weight');
  assert.equal(row.action, 'quantize');
  assert.ok(row.error.sqnrDb > 40, row.error.sqnrDb);
  const model = await modelFor(t, quantizer, bytes);
  assert.deepEqual((await quantizer.plan(model, configOf())).files, report.files);
  const [{ error }] = await quantizer.preview(model, configOf(), ['conv.weight']);
  assert.deepEqual(error, row.error);
  const plain = await quantizer.preview(model, configOf({ pre_quant_opt_config: [] }), ['conv.weight']);
  assert.notEqual(plain[0].error.mse, error.mse);
});

test('Preprocess of Brevitas folds norms too, and reports nothing without norms', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const { bytes } = network();
  const weight = { bit_width: 8, qscheme: 'per_channel' };
  const config = {
    dialect: 'brevitas',
    global_quant_config: { weight },
    pre_quant_opt_config: [{ name: 'Preprocess' }],
  };
  const { report } = await written(t, quantizer, bytes, config);
  assert.ok(report.diagnostics.some(({ code }) => code === 'norms-folded'));
  const off = { ...config, pre_quant_opt_config: [{ name: 'Preprocess', merge_batch_norm: false }] };
  const { report: without } = await written(t, quantizer, bytes, off);
  assert.ok(!without.diagnostics.some(({ code }) => code === 'norms-folded'));
});

test('static outputs of a layer into which a norm is folded are refused', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const { bytes } = network();
  const output_tensors = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false };
  const config = { ...configOf(), global_quant_config: { weight: int8, output_tensors } };
  const model = await modelFor(t, quantizer, bytes);
  const calibration = [{ layer: 'conv', role: 'output', data: noise(800, 1), shape: [1, 8, 10, 10] }];
  await assert.rejects(quantizer.quantizeModel(model, config, { target: memoryStream().stream, calibration }), {
    code: 'format-unsupported',
    message: /merge_batch_norm/,
  });
});
