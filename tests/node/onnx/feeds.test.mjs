// Feeds of ONNX models from files: which array is which input, how arrays become samples, what does not fit.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { captureActivations, feedsOf, modelInputs } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { npyFile, npzFile } from '../sources/npy_file.mjs';
import { safetensors } from '../written_model.mjs';
import { graph, model as modelBytes, node, noise, tensor } from './model.mjs';

class Tensor {
  constructor(type, data, dims) {
    Object.assign(this, { type, data, dims });
  }
}

/** y = x w, x [2, 4]; `rate` is a whole number that nothing reads. */
const network = (shape = [2, 4]) =>
  modelBytes(
    graph({
      nodes: [node('MatMul', ['x', 'w'], ['y'], { name: '/m/MatMul' })],
      tensors: [tensor('w', 'F32', [4, 3], noise(12, 1))],
      inputs: [
        ['x', 'F32', shape],
        ['rate', 'I64', []],
        ['w', 'F32', [4, 3]],
      ],
      outputs: [['y', 'F32', ['n', 3]]],
    }),
  );

const float = (shape, seed = 1) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
});
const rate = { dtype: 'I64', shape: [], data: BigInt64Array.of(16000n) };

async function samples(feeds) {
  const out = [];
  for await (const feed of feeds) out.push(feed);
  return out;
}

/** The model, and a function that reads feeds of safetensors files given as their tensors. */
async function opened(t, shape) {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, network(shape));
  const of = async (...files) =>
    feedsOf({ Tensor }, model, ...(await Promise.all(files.map((file) => modelFor(t, quantizer, safetensors(file))))));
  return { quantizer, model, of };
}

test('inputs are listed with type and shape; those with a default are optional', async (t) => {
  const { model, quantizer } = await opened(t, ['batch', 4]);
  assert.deepEqual(modelInputs(model), [
    { name: 'x', type: 'float32', shape: ['batch', 4], optional: false },
    { name: 'rate', type: 'int64', shape: [], optional: false },
    { name: 'w', type: 'float32', shape: [4, 3], optional: true },
  ]);
  const other = await modelFor(t, quantizer, safetensors({ x: float([2, 4]) }));
  assert.throws(() => modelInputs(other), { code: 'format-unsupported' });
  assert.throws(() => modelInputs({}), { code: 'argument-invalid' });
});

test('an array is one sample or several: by element count, by one more axis, by its rows', async (t) => {
  const { of } = await opened(t);
  const x = noise(3 * 8, 5);
  const cuts = {
    'by number': { 'x.2': x.slice(16), 'x.0': x.slice(0, 8), 'x.1': x.slice(8, 16) },
    'one more axis': { x },
    'by rows': { x },
  };
  const shapes = { 'by number': [2, 4], 'one more axis': [3, 2, 4], 'by rows': [6, 4] };
  for (const [what, tensors] of Object.entries(cuts)) {
    const file = Object.fromEntries(
      Object.entries(tensors).map(([name, data]) => [name, { dtype: 'F32', shape: shapes[what], data }]),
    );
    const feeds = await of({ ...file, rate });
    assert.equal(feeds.count, 3, what);
    const found = await samples(feeds);
    for (const [i, feed] of found.entries()) {
      assert.deepEqual(feed.x, new Tensor('float32', x.slice(8 * i, 8 * i + 8), [2, 4]), what);
      assert.deepEqual(feed.rate, new Tensor('int64', BigInt64Array.of(16000n), []), 'the only one goes with all');
    }
    assert.deepEqual(await samples(feeds), found, 'read a second time');
  }
});

test('a dimension without a size accepts any number of rows', async (t) => {
  const { of } = await opened(t, ['batch', 4]);
  const [feed, ...others] = await samples(await of({ x: float([6, 4]), rate }));
  assert.deepEqual(feed.x.dims, [6, 4]);
  assert.equal(others.length, 0);
});

test('several files follow each other, .npz and lists of .npy too', async (t) => {
  const folder = scratchFolder(t);
  const { quantizer, model } = await opened(t);
  const x = (seed) => npyFile('<f4', [2, 4], noise(8, seed));
  const rates = npyFile('<i8', [], BigInt64Array.of(8000n));
  const path = (name, bytes) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const archive = await modelFor(
    t,
    quantizer,
    path(
      'a.npz',
      npzFile([
        { name: 'x.npy', bytes: x(1), deflate: true },
        { name: 'rate.npy', bytes: rates },
      ]),
    ),
  );
  const arrays = await modelFor(t, quantizer, [path('x.npy', x(2)), path('rate.npy', rates)]);
  const found = await samples(feedsOf({ Tensor }, model, archive, arrays));
  assert.deepEqual(
    found.map((feed) => feed.x.data),
    [noise(8, 1), noise(8, 2)],
  );
});

test('feeds that do not fit are refused before anything runs, by the name of the array or input', async (t) => {
  const { of } = await opened(t);
  const x = float([2, 4]);
  for (const [file, code, where, pattern] of [
    [{ rate }, 'argument-invalid', 'x', /needs this input \(float32 \[2, 4\]\)/],
    [{ x, rate, y: x }, 'argument-invalid', 'y', /not an input.*x \(float32 \[2, 4\]\), rate \(int64 \[\]\)$/],
    [{ x: float([2, 5]), rate }, 'shape-mismatch', 'x', /is \[2, 5\]; the input x needs \[2, 4\]/],
    [{ x: float([3, 4]), rate }, 'shape-mismatch', 'x', /is \[3, 4\]/],
    [{ x: float([0, 2, 4]), rate }, 'shape-mismatch', 'x', /no elements/],
    [
      { x: { dtype: 'F64', shape: [2, 4], data: new Float64Array(8) }, rate },
      'dtype-unsupported',
      'x',
      /float64; the input x needs float32.*astype\("float32"\)/,
    ],
    [
      { x: { dtype: 'BF16', shape: [2, 4], data: new Uint16Array(8) }, rate },
      'dtype-unsupported',
      'x',
      /BF16, which the runtime/,
    ],
    [{ x: float([3, 2, 4]), 'rate.0': rate, 'rate.1': rate }, 'shape-mismatch', 'rate', /2 samples.*another.* 3$/],
  ])
    await assert.rejects(of(file), (error) => {
      assert.equal(error.code, code);
      assert.equal(error.where, where);
      assert.match(error.message, pattern);
      return true;
    });
  await assert.rejects(of(), { code: 'argument-invalid', where: 'feeds' });
  await assert.rejects(of({ x: float([65_537, 2, 4]), rate }), /65537 samples; at most 65536/);
});

test('captureActivations accepts feeds', async (t) => {
  const { model, of } = await opened(t);
  const runs = [];
  const run = async (feed, names) => {
    runs.push(feed);
    return Object.fromEntries(names.map((name) => [name, new Tensor('float32', noise(6, 9), [2, 3])]));
  };
  const runtime = { InferenceSession: { create: async () => ({ run, release: async () => {} }) } };
  const feeds = await of({ x: float([3, 2, 4]), rate });
  const wanted = [{ layer: 'm', role: 'input' }];
  const activations = captureActivations(runtime, model, feeds);
  for (let pass = 0; pass < 2; ++pass)
    assert.equal((await samples(activations.only(wanted))).length, 3, 'observers may see data twice');
  await samples(activations);
  assert.deepEqual(Object.keys(runs[0]), ['x', 'rate']);
});
