// Activations captured through a runtime: what is asked of it, what comes out, what is refused. The runtime here stands in
// for ONNX Runtime, which runs in tests/interop/onnx/onnx.mjs.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as browserEntry from '../../../dist/onnxruntime/onnxruntime.js';
import * as nodeEntry from '../../../dist/onnxruntime/onnxruntime_node.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { field, graph, model as modelBytes, node, noise, tensor, twoLayers } from './model.mjs';

const { captureActivations } = nodeEntry;

/** Gives out a value of its own for each name, [2, 4] of float32. */
function standIn({ type = 'float32', data = (length) => new Float32Array(length).fill(0.5) } = {}) {
  const seen = { models: [], options: [], runs: [], disposed: 0, released: 0 };
  const tensorOf = () => ({ type, dims: [2, 4], data: data(8), dispose: () => ++seen.disposed });
  const create = async (bytes, options) => {
    seen.models.push(bytes);
    seen.options.push(options);
    return {
      async run(feed, names) {
        if (feed.fails) throw new Error('a shape that does not fit');
        seen.runs.push(names);
        return Object.fromEntries(names.map((name) => [name, tensorOf()]));
      },
      release: async () => ++seen.released,
    };
  };
  return { runtime: { InferenceSession: { create } }, seen };
}

async function collected(batches) {
  const out = [];
  for await (const batch of batches) out.push(batch);
  return out;
}
const uses = (batches) => batches.map(({ layer, role }) => `${layer}.${role}`);

test('both entries export the same', () => {
  const names = ['captureActivations', 'feedsOf', 'measureSpeed', 'modelInputs'];
  assert.deepEqual(Object.keys(browserEntry), names);
  assert.deepEqual(Object.keys(nodeEntry), names);
});

test('values around layers become additional outputs; the model itself is unchanged', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes } = twoLayers();
  const { runtime, seen } = standIn();
  const model = await modelFor(t, quantizer, bytes);
  const batches = await collected(captureActivations(runtime, model, [{}, {}]));
  const each = ['mlp.up_proj.input', 'mlp.up_proj.output', 'down.input', 'down.output'];
  assert.deepEqual(uses(batches), [...each, ...each]);
  assert.deepEqual(
    { ...batches[0] },
    { ...batches[0], dtype: 'F32', shape: [2, 4], data: new Float32Array(8).fill(0.5) },
  );
  const [given] = seen.models;
  assert.deepEqual(given.subarray(0, bytes.length), bytes);
  const added = ['e', 'h', 'r'].map((name) => field(12, field(1, name)));
  assert.deepEqual(
    given.subarray(bytes.length),
    field(7, new Uint8Array(Buffer.concat(added))),
    'y is an output already',
  );
  assert.deepEqual(seen.runs, [
    ['e', 'h', 'r', 'y'],
    ['e', 'h', 'r', 'y'],
  ]);
  assert.deepEqual([seen.disposed, seen.released], [8, 1]);
});

test('only the requested values, a limited number per run, from any source of a model', async () => {
  const { bytes } = twoLayers();
  const { runtime, seen } = standIn();
  const activations = captureActivations(runtime, bytes, [{}], {
    valuesPerRun: 1,
    sessionOptions: { logSeverityLevel: 3 },
  });
  const wanted = [
    { layer: 'down', role: 'input' },
    { layer: 'mlp.up_proj', role: 'output' },
  ];
  assert.deepEqual(uses(await collected(activations.only(wanted))), ['down.input', 'mlp.up_proj.output']);
  assert.deepEqual(seen.runs, [['r'], ['h']]);
  assert.deepEqual(seen.options, [{ logSeverityLevel: 3 }]);
  await assert.rejects(collected(activations.only([{ layer: 'embed_tokens', role: 'input' }])), {
    code: 'argument-invalid',
    where: 'embed_tokens',
  });
});

test('an input of the model is taken from the feed', async () => {
  const bytes = modelBytes(
    graph({
      nodes: [node('MatMul', ['x', 'w'], ['y'], { name: '/m/MatMul' })],
      tensors: [tensor('w', 'F32', [4, 3], noise(12, 1))],
      inputs: [['x', 'F32', [2, 4]]],
      outputs: [['y', 'F32', [2, 3]]],
    }),
  );
  const { runtime, seen } = standIn();
  const x = { type: 'float32', dims: [2, 4], data: noise(8, 2) };
  const [input, output] = await collected(captureActivations(runtime, bytes, [{ x }]));
  assert.deepEqual(input, { layer: 'm', role: 'input', dtype: 'F32', shape: [2, 4], data: x.data });
  assert.equal(output.role, 'output');
  assert.deepEqual(seen.runs, [['y']]);
  await assert.rejects(collected(captureActivations(runtime, bytes, [{}])), /x: feed 0 has no input/);
});

test('float16 is passed as bits, other types are refused', async () => {
  const { bytes } = twoLayers();
  const half = standIn({ type: 'float16', data: (length) => new Uint16Array(length).fill(0x3c00) });
  const [batch] = await collected(captureActivations(half.runtime, bytes, [{}]));
  assert.deepEqual([batch.dtype, batch.data], ['F16', new Uint16Array(8).fill(0x3c00)]);
  const whole = standIn({ type: 'int32', data: (length) => new Int32Array(length) });
  await assert.rejects(collected(captureActivations(whole.runtime, bytes, [{}])), {
    code: 'dtype-unsupported',
    where: 'e',
    message: /int32.*float32 or float16/,
  });
  assert.equal(whole.seen.released, 1, 'the session is released after an error, too');
});

test('exhausted feeds are not read again; a function creates them again', async () => {
  const { bytes } = twoLayers();
  const { runtime } = standIn();
  const wanted = [{ layer: 'down', role: 'input' }];
  function* feeds() {
    yield {};
  }
  const once = captureActivations(runtime, bytes, feeds());
  assert.equal((await collected(once.only(wanted))).length, 1);
  await assert.rejects(collected(once.only(wanted)), { code: 'argument-invalid', where: 'feeds' });
  const anew = captureActivations(runtime, bytes, feeds);
  for (let pass = 0; pass < 2; ++pass) assert.equal((await collected(anew.only(wanted))).length, 1);
});

test('external data is passed along', async (t) => {
  const folder = scratchFolder(t);
  const { bytes, data } = twoLayers({ location: 'weights.bin' });
  writeFileSync(join(folder, 'model.onnx'), bytes);
  writeFileSync(join(folder, 'weights.bin'), data);
  const { runtime, seen } = standIn();
  await collected(captureActivations(runtime, join(folder, 'model.onnx'), [{}]));
  const [{ externalData }] = seen.options;
  assert.deepEqual(
    externalData.map(({ path }) => path),
    ['weights.bin'],
  );
  assert.deepEqual(new Uint8Array(externalData[0].data), data);
});

test('impossible captures are explained: nested graphs, other formats, feeds and models that the runtime refuses', async () => {
  const inner = graph({
    nodes: [node('MatMul', ['x', 'w'], ['i'], { name: '/m/MatMul' })],
    tensors: [tensor('w', 'F32', [4, 3], noise(12, 1))],
    outputs: [['i', 'F32', [2, 3]]],
  });
  const nested = modelBytes(
    graph({
      nodes: [node('If', ['c'], ['y'], { then_branch: inner, else_branch: inner })],
      inputs: [
        ['c', 'I64', []],
        ['x', 'F32', [2, 4]],
      ],
      outputs: [['y', 'F32', [2, 3]]],
    }),
  );
  const { runtime } = standIn();
  assert.deepEqual(await collected(captureActivations(runtime, nested, [{}])), []);
  await assert.rejects(collected(captureActivations(runtime, nested, [{}]).only([{ layer: 'm', role: 'input' }])), {
    code: 'argument-invalid',
    where: 'm',
    message: /inside a control-flow subgraph \(If, Loop, Scan\).*is_dynamic/,
  });
  await assert.rejects(collected(captureActivations(runtime, tinyLlama, [{}])), { code: 'format-unsupported' });
  const { bytes } = twoLayers();
  await assert.rejects(collected(captureActivations(runtime, bytes, [{ fails: true }])), /feed 0: .*does not fit/);
  const create = async () => {
    throw new Error('no such operator');
  };
  await assert.rejects(collected(captureActivations({ InferenceSession: { create } }, bytes, [{}])), {
    code: 'source-invalid',
    message: /no such operator/,
  });
  assert.throws(() => captureActivations(runtime, bytes, [{}], { valuesPerRun: 0 }), /valuesPerRun/);
  const controller = new AbortController();
  controller.abort(new Error('enough'));
  await assert.rejects(collected(captureActivations(runtime, bytes, [{}], { signal: controller.signal })), /enough/);
});
