// Presets for ONNX models as people have them: recurrent layers, and weights that several kinds of nodes read. ONNX Runtime runs them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as ort from 'onnxruntime-web';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { convolutions, graph, model as modelBytes, node, noise, tensor, twoLayers } from './model.mjs';

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
    for (const { spec, shape } of report.tensors.filter(({ action }) => action === 'quantize')) {
      const size = shape.reduce((product, extent) => product * extent, 1);
      quantizer.quantize({ data: noise(size, 4), shape }, spec); // specs of a plan are specs that can be given
    }
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
    assert.equal((await quantizer.plan(model, own)).totals.quantized, 0);
    const excluded = quantizer.presetConfig('int8', { exclude: ['rnn*', '*rnn*'] });
    assert.equal((await quantizer.plan(model, excluded)).totals.quantized, 0);
  }
});

test('a weight with another reader is in the file once: int8 for all its readers', async (t) => {
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

test('embeddings are int8 in groups in the presets of integers, as rows that are looked up', async (t) => {
  const [words, width] = [50, 96];
  const bytes = modelBytes(
    graph({
      nodes: [
        node('Gather', ['words.weight', 'ids'], ['e'], { name: '/words/Gather' }),
        node('Gather', ['odd.weight', 'ids'], ['o'], { name: '/odd/Gather' }),
        node('MatMul', ['e', 'up'], ['h'], { name: '/up/MatMul' }),
        node('Concat', ['h', 'o'], ['y'], { name: '/join', axis: 1 }),
      ],
      tensors: [
        tensor('words.weight', 'F32', [words, width], noise(words * width, 1)),
        tensor('odd.weight', 'F32', [words, 20], noise(words * 20, 2)),
        tensor('up', 'F32', [width, 64], noise(width * 64, 3)),
      ],
      inputs: [['ids', 'I64', ['n']]],
      outputs: [['y', 'F32', ['n', 84]]],
    }),
  );
  const feeds = { ids: new ort.Tensor('int64', BigInt64Array.of(0n, 7n, 49n, 7n), [4]) };
  const { model, quantizer, found } = await results(t, bytes, feeds, ['int8', 'int4_wo_32', 'int8_dynamic']);
  for (const [preset, most] of [
    ['int8', 0.01],
    ['int4_wo_32', 0.09],
    ['int8_dynamic', 0.02],
  ]) {
    const { report, error } = found[preset];
    const row = (name) => report.tensors.find((each) => each.name === name);
    assert.match(row('words.weight').reason.text, /embeddings .* int8 in groups; as Gather of codes/, preset);
    assert.equal(row('words.weight').spec.group_size, 32, preset); // the largest that divides 96
    assert.equal(row('odd.weight').spec.qscheme, 'per_channel', preset); // 20 has no groups
    assert.ok(error < most, `${preset}: ${error}`);
  }
  // With DequantizeLinear throughout the whole table would be converted in each run.
  const qdq = await quantizer.plan(model, 'int8', { onnx: { qdq: true } });
  assert.equal(qdq.tensors.find(({ name }) => name === 'words.weight').action, 'copy');
  const left = quantizer.presetConfig('int8', { exclude: ['words'] });
  assert.equal((await quantizer.plan(model, left)).tensors.find(({ name }) => name === 'words.weight').action, 'copy');
});

test('the plan warns that convolutions that round their inputs at run time are slow', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, new Uint8Array(convolutions()));
  const slow = ({ diagnostics }) => diagnostics.find(({ code }) => code === 'slow-convolutions');
  assert.match(slow(await quantizer.plan(model, 'int8_dynamic')).hint, /int8/);
  assert.equal(slow(await quantizer.plan(model, 'int8')), undefined);
  const products = await modelFor(t, quantizer, new Uint8Array(twoLayers().bytes));
  assert.equal(slow(await quantizer.plan(products, 'int8_dynamic')), undefined);
});

test('compare runs both models and compares their outputs', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const [source, target] = ['model.onnx', 'model_int8.onnx'].map((name) => join(folder, name));
  writeFileSync(source, twoLayers().bytes);
  const model = await modelFor(t, quantizer, source);
  await quantizer.quantizeModel(model, 'int8', { target });
  const quantized = await modelFor(t, quantizer, target);
  const ids = (...list) => ({ ids: new ort.Tensor('int64', BigInt64Array.from(list, BigInt), [list.length]) });
  const feeds = [ids(1, 2, 3), ids(39)];
  const values = [];
  const { outputs, totals } = await quantizer.compare(model, quantized, {
    runtime: ort,
    feeds,
    onOutput: (output) => values.push(output),
  });
  assert.ok(totals.tensors > 0);
  assert.deepEqual([outputs.feeds, outputs.areGenerated], [2, false]);
  assert.deepEqual(
    values.map(({ feed, name, shape }) => [feed, name, [...shape]]),
    [
      [0, 'y', [3, 32]],
      [1, 'y', [1, 32]],
    ],
  );
  const off = await Promise.all(
    feeds.map(async (feed) =>
      relativeError(await outputOf(readFileSync(source), feed), await outputOf(readFileSync(target), feed)),
    ),
  );
  assert.ok(Math.abs(outputs.error - (off[0] + off[1]) / 2) < 1e-6, `${outputs.error}, by hand ${off}`);
  assert.deepEqual(outputs.outputs, [{ name: 'y', error: outputs.error }]);
  const made = await quantizer.compare(model, quantized, { runtime: ort, windows: 3 });
  assert.deepEqual([made.outputs.feeds, made.outputs.areGenerated], [3, true]);
  assert.equal((await quantizer.compare(model, quantized)).outputs, undefined);
  const language = await modelFor(t, quantizer, tinyLlama);
  await assert.rejects(quantizer.compare(language, language, { runtime: ort }), { code: 'format-unsupported' });
  await assert.rejects(quantizer.compare(model, quantized, { runtime: {} }), { code: 'argument-invalid' });
});
