// curve(): each point is the file that a run writes, and its loss the one that evaluate, ONNX Runtime or the report finds.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import * as ort from 'onnxruntime-web';
import { undecidedPairs } from '../../../dist/curve/shape.js';
import * as browserEntry from '../../../dist/index.js';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { graph, model as modelBytes, node, noise, tensor, wordModel } from '../onnx/model.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const evalTokens = join(files, 'tiny-llama-reference/eval_tokens.safetensors');

function rowsOf(count) {
  const { data } = readTensors(evalTokens).get('input_ids');
  return Array.from({ length: count }, (_, row) => Array.from(data.subarray(row * 256, (row + 1) * 256), Number));
}

/** Points that nothing beats, found one pair at a time. */
function frontierOf({ original, points }) {
  const beats = (a, b) => a !== b && a.bytes <= b.bytes && a.loss <= b.loss && (a.bytes < b.bytes || a.loss < b.loss);
  return points
    .filter((point) => ![original, ...points].some((other) => beats(other, point)))
    .map(({ scheme }) => scheme);
}

function checkShape(curve) {
  const bytes = curve.points.map((point) => point.bytes);
  assert.deepEqual(
    bytes,
    [...bytes].sort((a, b) => b - a),
  );
  assert.deepEqual(
    curve.points.filter(({ onFrontier }) => onFrontier).map(({ scheme }) => scheme),
    frontierOf(curve),
  );
}

test('a language model: the losses are those of evaluate for the files that runs write', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { rows: rowsOf(4) };
  const told = [];
  const temporary = () => readdirSync(tmpdir()).filter((name) => /^wasmquant-\w{6}$/.test(name)).length;
  const before = temporary();
  const curve = await quantizer.curve(model, {
    target: 'llama.cpp',
    schemes: ['q8_0', 'q4_k_m', 'q2_k'],
    tokens,
    windows: 3,
    onPoint: (point, soFar) => told.push({ ...point, points: soFar.points.length }),
  });
  assert.equal(temporary(), before);
  assert.deepEqual(curve.metric, { kind: 'bits-per-byte', name: 'bits per byte', windows: 3 });
  checkShape(curve);
  assert.deepEqual(
    curve.points.map(({ scheme, format, measured }) => [scheme, format, measured]),
    [
      ['q8_0', 'gguf', true],
      ['q4_k_m', 'gguf', true],
      ['q2_k', 'gguf', true],
    ],
  );
  const folder = scratchFolder(t);
  const three = { tokens: { rows: rowsOf(3) } };
  const original = await quantizer.languageModel(model).evaluate(three);
  assert.equal(curve.original.loss, original.bitsPerByte);
  assert.equal(curve.original.bytes, model.bytes);
  for (const { scheme, bytes, loss, error } of curve.points) {
    const target = join(folder, `${scheme}.gguf`);
    await quantizer.quantizeModel(model, scheme, { target });
    assert.equal(bytes, statSync(target).size);
    const written = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.languageModel(written, { source: model }).evaluate(three);
    assert.ok(Math.abs(loss - bitsPerByte) < 1e-12, `${scheme}: ${loss}, evaluate ${bitsPerByte}`);
    assert.ok(error > 0 && error < 1);
  }
  // First the sizes; once the worst scheme is measured, the others have estimates.
  assert.deepEqual(
    told.slice(0, 3).map(({ loss, measured }) => [loss, measured]),
    Array(3).fill([null, false]),
  );
  const estimates = told.filter(({ loss, measured }) => !measured && loss !== null);
  assert.ok(estimates.length > 0);
  assert.ok(estimates.every(({ scheme, points }) => scheme !== 'q2_k' && points === 3));
});

test('configs are compared with presets under the names that they get', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const mixture = { dialect: 'gguf', recipe: 'q4_k_m', layers: { '*down_proj': 'q8_0' } };
  const options = { target: 'llama.cpp', tokens: { rows: rowsOf(2) }, windows: 2 };
  const curve = await quantizer.curve(model, { ...options, schemes: ['q4_k_m'], configs: { mixture } });
  checkShape(curve);
  assert.deepEqual(
    curve.points.map(({ scheme }) => scheme),
    ['mixture', 'q4_k_m'],
  );
  assert.ok(curve.points.every(({ measured, format }) => measured && format === 'gguf'));
  assert.equal(curve.points[0].bytes, (await quantizer.plan(model, mixture)).totals.bytesAfter);
  const all = await quantizer.curve(model, { ...options, configs: { mixture } });
  assert.ok(all.points.length > 4 && all.points.some(({ scheme }) => scheme === 'mixture'));
  const wrong = { dialect: 'gguf', recipe: 'q4_k_z' };
  await assert.rejects(quantizer.curve(model, { ...options, configs: { wrong } }), { code: 'config-invalid' });
});

test('windows are added until the order is certain, and pairs that stay undecided are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { rows: rowsOf(16).map((row) => row.slice(0, 48)) };
  const clear = await quantizer.curve(model, { schemes: ['int8', 'int2_wo_64'], tokens });
  assert.equal(clear.metric.windows, 8);
  assert.deepEqual(clear.undecided, []);
  const close = await quantizer.curve(model, { schemes: ['int8', 'uint4_wo_32', 'int4_wo_32'], tokens });
  checkShape(close);
  if (close.undecided.length > 0) assert.equal(close.metric.windows, 16);
  const scores = close.points.map(({ loss }) => loss);
  const all = await quantizer.curve(model, {
    schemes: ['int8', 'uint4_wo_32', 'int4_wo_32'],
    tokens,
    windows: close.metric.windows,
  });
  for (const [i, { loss }] of all.points.entries()) assert.ok(Math.abs(loss - scores[i]) < 1e-12);
});

test('text goes through the tokenizer; without known bytes the loss is the KLD', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const json = (name) => JSON.parse(readFileSync(join(tinyLlama, name), 'utf8'));
  const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
  const text = readFileSync(join(files, '../../SECURITY.md'), 'utf8');
  const schemes = ['int8'];
  const curve = await quantizer.curve(model, { schemes, text, tokenizer, windows: 1 });
  const given = { tokens: { text, tokenizer, sequences: 1 } };
  assert.equal(curve.original.loss, (await quantizer.languageModel(model).evaluate(given)).bitsPerByte);
  await assert.rejects(quantizer.curve(model, { schemes, text }), { code: 'argument-invalid' });
  const bare = await modelFor(t, quantizer, join(files, 'forward/gemma2'));
  const ids = await modelFor(t, quantizer, join(files, 'forward/gemma2/expected.safetensors'));
  const divergences = await quantizer.curve(bare, { schemes: ['int8', 'int4_wo_32'], tokens: ids });
  assert.equal(divergences.metric.kind, 'kld');
  assert.equal(divergences.original.loss, 0);
  assert.ok(divergences.points.every(({ loss, error }) => loss > 0 && error > 0));
  checkShape(divergences);
});

test("weights, if nothing else can be measured: the report's errors, weighted by elements", async (t) => {
  const quantizer = await quantizerFor(t);
  const path = join(scratchFolder(t), 'plain.safetensors');
  writeFloats(
    path,
    new Map([
      ['a.weight', { shape: [64, 128], data: noise(64 * 128, 1) }],
      ['b.weight', { shape: [32, 256], data: noise(32 * 256, 2) }],
      ['b.bias', { shape: [32], data: noise(32, 3) }],
    ]),
  );
  const model = await modelFor(t, quantizer, path);
  const curve = await quantizer.curve(model, { schemes: ['int8', 'int4_wo_128'] });
  assert.deepEqual(curve.metric, { kind: 'weight-error', name: 'relative error of weights' });
  checkShape(curve);
  for (const { scheme, loss, measured } of curve.points) {
    assert.ok(measured);
    const tried = await quantizer.preview(model, scheme, ['a.weight', 'b.weight']);
    const sum = tried.reduce((all, { error, shape }) => all + shape[0] * shape[1] * 10 ** (-error.sqnrDb / 10), 0);
    assert.ok(Math.abs(loss - Math.sqrt(sum / (64 * 128 + 32 * 256 + 32))) < 1e-12);
  }
  const gpt = await quantizer.curve(model, { schemes: ['int8'], tokens: { rows: [[1, 2, 3]] } });
  assert.equal(gpt.metric.kind, 'weight-error');
  assert.match(gpt.metric.reason, /config\.json/);
});

test('bytes that are unknown anywhere make it the KLD, in every number of windows', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  cpSync(tinyLlama, folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8'));
  const rows = rowsOf(16).map((row) => row.slice(0, 24));
  const model = await modelFor(t, quantizer, folder);
  const of = (schemes, windows) => quantizer.curve(model, { schemes, tokens: { rows }, ...(windows && { windows }) });
  assert.equal((await of(['int8'], 16)).metric.kind, 'bits-per-byte');
  // A token of the last window alone loses its text.
  const { vocab } = tokenizer.model;
  const used = new Set(rows.flat());
  const [text, lost] = Object.entries(vocab).find(([, id]) => !used.has(id));
  rows[15][7] = lost;
  delete vocab[text];
  writeFileSync(path, JSON.stringify(tokenizer));
  for (const windows of [16, undefined]) {
    const { metric, original, points } = await of(['int8', 'uint4_wo_32', 'int4_wo_32'], windows);
    assert.equal(metric.kind, 'kld', `${windows}`);
    assert.equal(original.loss, 0);
    assert.ok(points.every(({ loss, measured }) => measured && Number.isFinite(loss)));
  }
  assert.equal((await of(['int8'], 8)).metric.kind, 'bits-per-byte', 'windows that are not measured do not matter');
});

test('order: undecided by standard errors where there are no samples, and by a single sample never decided', () => {
  const point = (scheme, loss, more) => ({ scheme, loss, measured: true, samples: [], ...more });
  const pairs = (...points) => undecidedPairs(points, ({ samples, loss, error }) => ({ samples, loss, error }));
  assert.deepEqual(pairs(point('a', 0.183, { error: 0.024 }), point('b', 0.198, { error: 0.025 })), [['a', 'b']]);
  assert.deepEqual(pairs(point('a', 0.1, { error: 0.01 }), point('b', 0.2, { error: 0.02 })), []);
  assert.deepEqual(pairs(point('a', 1, { samples: [1] }), point('b', 2, { samples: [2] })), [['a', 'b']]);
  assert.deepEqual(pairs(point('a', 1, { samples: [1, 2, 3] }), point('b', 2, { samples: [2, 3.1, 4] })), []);
});

test('outputs that are NaN or infinite are no figures of a curve', async (t) => {
  const quantizer = await quantizerFor(t);
  // Near 0 rounding changes the sign of some sums, of which sqrt and log make NaN and 1 / x something infinite or large.
  const weights = Float32Array.from({ length: 64 * 256 }, (_, i) => Math.sin(i * 12.9898) * 0.05);
  const feeds = [
    {
      x: new ort.Tensor(
        'float32',
        Float32Array.from({ length: 4 * 64 }, (_, i) => Math.cos(i * 7.13)),
        [4, 64],
      ),
    },
  ];
  for (const type of ['Sqrt', 'Log']) {
    const bytes = modelBytes(
      graph({
        nodes: [node('MatMul', ['x', 'w'], ['s'], { name: '/m' }), node(type, ['s'], ['y'], { name: '/r' })],
        tensors: [tensor('w', 'F32', [64, 256], weights)],
        inputs: [['x', 'F32', ['n', 64]]],
        outputs: [['y', 'F32', ['n', 256]]],
      }),
    );
    const model = await modelFor(t, quantizer, new File([bytes], 'm.onnx'));
    const told = [];
    const options = { schemes: ['int8', 'int4_wo_32'], runtime: ort, feeds, onPoint: (point) => told.push(point) };
    const { points } = await quantizer.curve(model, options);
    for (const { loss, measured, onFrontier, reason } of points) {
      assert.deepEqual({ loss, measured, onFrontier }, { loss: null, measured: false, onFrontier: false }, type);
      assert.match(reason, /its loss is Infinity: it has NaN or infinite values/);
    }
    assert.ok(told.every(({ loss }) => loss === null || Number.isFinite(loss)));
    const stream = memoryStream();
    await quantizer.quantizeModel(model, 'int4_wo_32', { target: stream.stream });
    const output = await modelFor(t, quantizer, new File([stream.bytes()], 'q.onnx'));
    const { outputs } = await quantizer.compare(model, output, { runtime: ort, feeds });
    assert.equal(outputs.error, Number.POSITIVE_INFINITY, 'an infinite error, not NaN');
  }
});

/** Outputs of a file in ONNX Runtime. */
async function outputOf(bytes, feed, name) {
  const session = await ort.InferenceSession.create(new Uint8Array(bytes));
  const { data } = (await session.run(feed))[name];
  await session.release();
  return data;
}

function relativeError(expected, found) {
  const squares = expected.reduce((sum, value) => sum + value ** 2, 0);
  return Math.sqrt(expected.reduce((sum, value, i) => sum + (value - found[i]) ** 2, 0) / squares);
}

test('an ONNX model: the errors of its outputs in ONNX Runtime, on given or generated feeds', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const bytes = wordModel(50);
  writeFileSync(join(folder, 'words.onnx'), bytes);
  const model = await modelFor(t, quantizer, join(folder, 'words.onnx'));
  const feed = { input_ids: new ort.Tensor('int64', BigInt64Array.from([1n, 7n, 49n, 3n]), [1, 4]) };
  const schemes = ['int8', 'int4_wo_32'];
  const curve = await quantizer.curve(model, { schemes, runtime: ort, feeds: [feed] });
  assert.equal(curve.metric.kind, 'output-error');
  assert.equal(curve.metric.windows, 1);
  checkShape(curve);
  const expected = await outputOf(bytes, feed, 'logits');
  for (const { scheme, loss } of curve.points) {
    const target = join(folder, `${scheme}.onnx`);
    await quantizer.quantizeModel(model, scheme, { target });
    const found = await outputOf(readFileSync(target), feed, 'logits');
    assert.ok(Math.abs(loss - relativeError(expected, found)) < 1e-9, scheme);
  }
  const madeUp = await quantizer.curve(model, { schemes, runtime: ort });
  assert.equal(madeUp.metric.windows, 4);
  assert.match(madeUp.metric.name, /made-up inputs/);
  assert.ok(madeUp.points.every(({ loss, measured }) => measured && loss > 0 && loss < 0.5));
  const unrun = await quantizer.curve(model, { schemes });
  assert.equal(unrun.metric.kind, 'weight-error');
  assert.match(unrun.metric.reason, /no runtime was given/);
  await assert.rejects(quantizer.curve(model, { schemes, runtime: {} }), {
    code: 'argument-invalid',
    where: 'runtime',
  });
  await assert.rejects(quantizer.curve(model, { schemes, runtime: ort, feeds: [{ wrong: feed.input_ids }] }), {
    code: 'argument-invalid',
    where: 'feed 0',
  });
});

test('feeds are generated for images of a dynamic size, float16 and scalars', async (t) => {
  const quantizer = await quantizerFor(t);
  const path = join(scratchFolder(t), 'picture.onnx');
  const weight = noise(8 * 3 * 3 * 3, 5);
  writeFileSync(
    path,
    modelBytes(
      graph({
        nodes: [
          node('Conv', ['pixels', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
          node('Cast', ['rate'], ['r'], { to: 1 }),
          node('Mul', ['c', 'r'], ['y']),
        ],
        tensors: [tensor('conv.weight', 'F32', [8, 3, 3, 3], weight)],
        inputs: [
          ['pixels', 'F32', ['batch', 'channels', 'height', 'width']],
          ['rate', 'I64', []],
        ],
        outputs: [['y', 'F32', ['batch', 8, 'h', 'w']]],
      }),
    ),
  );
  const model = await modelFor(t, quantizer, path);
  const { metric, points } = await quantizer.curve(model, { schemes: ['int8'], runtime: ort, windows: 2 });
  assert.equal(metric.kind, 'output-error');
  assert.equal(metric.windows, 2);
  assert.ok(points[0].loss > 0 && points[0].loss < 0.1);
});

test('the default schemes are those of the runtime, without duplicates', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const of = async (target) => (await quantizer.curve(model, { target })).points;
  for (const [target, format] of [
    ['llama.cpp', 'gguf'],
    ['ollama', 'gguf'],
    ['web', 'gguf'],
    ['vllm', 'compressed-tensors'],
    ['transformers', 'compressed-tensors'],
    ['onnxruntime', 'onnx'],
  ]) {
    const points = await of(target);
    assert.ok(points.length >= 6 && points.length <= 10, target);
    assert.ok(points.every((point) => point.format === format));
  }
  await assert.rejects(of('llama'), { code: 'argument-invalid', where: 'target' });
  await assert.rejects(quantizer.curve(model, { schemes: ['int5'] }), { code: 'config-invalid' });
  await assert.rejects(quantizer.curve(model, { scheme: ['int8'] }), /did you mean schemes/);
});

test('the entry for browsers measures in memory, and an abort ends it', async (t) => {
  const wasmModule = await WebAssembly.compile(readFileSync(join(files, '../../dist/wasmquant.wasm')));
  const quantizer = await browserEntry.createQuantizer({ threads: 0, wasmModule });
  t.after(() => quantizer[Symbol.asyncDispose]());
  const names = ['model.safetensors', 'config.json', 'tokenizer.json'];
  const source = names.map((name) => new File([readFileSync(join(tinyLlama, name))], name));
  const options = { schemes: ['q4_k_m'], target: 'web', tokens: { rows: rowsOf(2) } };
  await assert.rejects(quantizer.curve(source, options), { code: 'argument-invalid', where: 'model' });
  const { points, metric } = await quantizer.curve(await modelFor(t, quantizer, source), options);
  const node = await quantizerFor(t);
  const model = await modelFor(t, node, tinyLlama);
  const same = await node.curve(model, options);
  assert.deepEqual([points, metric], [same.points, same.metric]);
  const controller = new AbortController();
  const onPoint = () => controller.abort();
  await assert.rejects(node.curve(model, { ...options, signal: controller.signal, onPoint }), {
    name: 'AbortError',
  });
});
