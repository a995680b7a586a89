// Presets for ONNX models as people have them: recurrent layers, and weights that several kinds of nodes read. ONNX Runtime runs them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as ort from 'onnxruntime-web';
import { graph, model as modelBytes, node, noise, tensor } from './onnx_model.mjs';
import { modelFor, quantizerFor, scratchFolder } from './scratch.mjs';

async function outputOf(bytes, feeds) {
  const session = await ort.InferenceSession.create(new Uint8Array(bytes));
  const { y } = await session.run(feeds);
  await session.release();
  return y.data;
}

function relativeError(expected, found) {
  const squares = expected.reduce((sum, value) => sum + value ** 2, 0);
  return Math.sqrt(expected.reduce((sum, value, i) => sum + (value - found[i]) ** 2, 0) / squares);
}

/** Writes the model and its results by preset: bytes of the file, quantized tensors, error of the output. */
async function results(t, bytes, feeds, presets) {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const path = join(folder, 'model.onnx');
  writeFileSync(path, bytes);
  const model = await modelFor(t, quantizer, path);
  const expected = await outputOf(bytes, feeds);
  const found = {};
  for (const preset of presets) {
    const target = join(folder, `${preset}.onnx`);
    const report = await quantizer.quantizeModel(model, preset, { target });
    const written = readFileSync(target);
    assert.equal(report.totals.bytesAfter, written.length);
    found[preset] = { report, bytes: written.length, error: relativeError(expected, await outputOf(written, feeds)) };
  }
  return { model, quantizer, found };
}

const quantizedTypes = ({ tensors }) =>
  tensors.filter(({ action }) => action === 'quantize').map(({ layerType }) => layerType);

test('GRU and LSTM layers are int8 per channel in the presets of integers', async (t) => {
  const [input, hidden] = [24, 32];
  const weights = (name, gates) => [
    tensor(`${name}.W`, 'F32', [1, gates * hidden, input], noise(gates * hidden * input, 1)),
    tensor(`${name}.R`, 'F32', [1, gates * hidden, hidden], noise(gates * hidden * hidden, 2)),
  ];
  for (const [type, gates] of [
    ['GRU', 3],
    ['LSTM', 4],
  ]) {
    const bytes = modelBytes(
      graph({
        nodes: [
          node(type, ['x', 'rnn.W', 'rnn.R'], ['h'], { name: '/rnn', hidden_size: hidden }),
          node('Identity', ['h'], ['y']),
        ],
        tensors: weights('rnn', gates),
        inputs: [['x', 'F32', [5, 1, input]]],
        outputs: [['y', 'F32', [5, 1, 1, hidden]]],
      }),
    );
    const feeds = { x: new ort.Tensor('float32', noise(5 * input, 9), [5, 1, input]) };
    const { model, quantizer, found } = await results(t, bytes, feeds, ['int8', 'int4_wo_32', 'int8_dynamic']);
    for (const [preset, { report, bytes: size, error }] of Object.entries(found)) {
      assert.deepEqual(quantizedTypes(report), [type, type], preset);
      assert.ok(report.tensors.every(({ spec }) => spec.dtype === 'int8' && spec.qscheme === 'per_channel'));
      assert.match(report.tensors[0].reason.text, /^presets give (GRU|LSTM) layers/);
      assert.ok(size < 0.35 * model.bytes, `${preset}: ${size} of ${model.bytes}`);
      assert.ok(error < 0.02, `${preset}: ${error}`);
    }
    // One's own config decides by itself, and so does an exclusion.
    const own = { global_quant_config: { weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 } } };
    assert.equal(quantizer.plan(model, own).totals.quantized, 0);
    const excluded = quantizer.presetConfig('int8', { exclude: ['rnn*', '*rnn*'] });
    assert.equal(quantizer.plan(model, excluded).totals.quantized, 0);
  }
});

test('a weight that another node reads, too, is in the file once: int8 for all its readers', async (t) => {
  const bytes = modelBytes(
    graph({
      nodes: [
        node('MatMul', ['x', 'w'], ['a'], { name: '/proj/MatMul' }),
        node('Mul', ['w', 'w'], ['squared']),
        node('ReduceSum', ['squared', 'axes'], ['norm'], { keepdims: 0 }),
        node('Add', ['a', 'norm'], ['y']),
      ],
      tensors: [tensor('w', 'F32', [64, 96], noise(64 * 96, 3)), tensor('axes', 'I64', [1], BigInt64Array.of(0n))],
      inputs: [['x', 'F32', [2, 64]]],
      outputs: [['y', 'F32', [2, 96]]],
    }),
  );
  const feeds = { x: new ort.Tensor('float32', noise(128, 5), [2, 64]) };
  const { model, found } = await results(t, bytes, feeds, ['int4_wo_32', 'int8_dynamic']);
  for (const [preset, { report, bytes: size, error }] of Object.entries(found)) {
    assert.ok(!report.diagnostics.some(({ code }) => code === 'weight-kept-twice' || code === 'output-larger'), preset);
    const [weight] = report.tensors;
    assert.equal(weight.spec.dtype, 'int8');
    assert.match(weight.reason.text, /because other nodes read it, too/);
    assert.ok(size < 0.35 * model.bytes);
    assert.ok(error < 0.02, `${preset}: ${error}`);
  }
});
