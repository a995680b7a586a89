// ONNX: where weights lie. External data, varints, Constant nodes and nested graphs; files that are opened without them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { field, graph, model as modelBytes, node, noise, tensor, twoLayers } from './model.mjs';
import { named, namesOf, written } from './written.mjs';

test('external data is read from the folder of the model and written next to the output', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const { bytes, data } = twoLayers({ location: 'weights.bin' });
  writeFileSync(join(folder, 'model.onnx'), bytes);
  await assert.rejects(quantizer.open(join(folder, 'model.onnx')), { code: 'source-invalid', where: 'weights.bin' });
  await assert.rejects(quantizer.open(bytes), { code: 'source-invalid', where: 'weights.bin' });
  writeFileSync(join(folder, 'weights.bin'), data.subarray(0, 1000));
  await assert.rejects(quantizer.open(join(folder, 'model.onnx')), { code: /file-truncated|file-invalid/ });
  writeFileSync(join(folder, 'weights.bin'), data);
  const model = await modelFor(t, quantizer, join(folder, 'model.onnx'));
  assert.deepEqual(
    model.files.map(({ name }) => name),
    ['model.onnx', 'weights.bin'],
  );
  const inside = await written(t, quantizer, twoLayers().bytes, 'int8');
  const list = [new File([bytes], 'model.onnx'), new File([data], 'weights.bin')];
  for (const source of [join(folder, 'model.onnx'), folder, list]) {
    const { report } = await written(t, quantizer, source, 'int8');
    const errors = (tensors) => tensors.map(({ name, error }) => [name, error]).sort();
    assert.deepEqual(errors(report.tensors), errors(inside.report.tensors));
  }
  const target = join(folder, 'out.onnx');
  const report = await quantizer.quantizeModel(model, 'int8', { target, onnx: { externalData: true } });
  assert.deepEqual(report.files.map(({ name }) => name).sort(), ['out.onnx', 'out.onnx_data']);
  const again = await modelFor(t, quantizer, target);
  assert.deepEqual(
    again.files.map(({ name }) => name),
    ['out.onnx', 'out.onnx_data'],
  );
  assert.equal(named(again.tensors, 'up_quantized').file, 'out.onnx_data');
  assert.equal(named(again.tensors, 'up_quantized').begin % 4096, 0);
  assert.equal(named(again.tensors, 'down.bias').file, 'out.onnx');
  const own = { target, onnx: { externalData: true } };
  await assert.rejects(quantizer.quantizeModel(model, 'int8', own), { code: 'target-exists' });
  await quantizer.quantizeModel(model, 'int8', { ...own, overwrite: true });
  await assert.rejects(
    quantizer.quantizeModel(model, 'int8', { target: memoryStream().stream, onnx: { externalData: true } }),
    { code: 'target-invalid', message: /folder/ },
  );
  const streams = {};
  await quantizer.quantizeModel(model, 'int8', {
    onnx: { externalData: true },
    target: {
      write: async (name) => {
        streams[name] = memoryStream();
        return streams[name].stream;
      },
    },
  });
  assert.deepEqual(Object.keys(streams).sort(), ['model_int8.onnx', 'model_int8.onnx_data']);
  assert.deepEqual(
    streams['model_int8.onnx_data'].bytes(),
    new Uint8Array(readFileSync(join(folder, 'out.onnx_data'))),
  );
});

test('weights stored as varints, in Constant nodes and in nested graphs', async (t) => {
  const quantizer = await quantizerFor(t);
  const halves = Uint16Array.from({ length: 32 * 32 }, (_, i) => 0x2c00 + ((i * 37) % 4096)); // 0.0625 to 1
  const weightOf = (options) => tensor('w', 'F16', [32, 32], halves, options);
  const inner = (name) =>
    graph({
      name,
      nodes: [node('MatMul', ['x', 'w'], [`${name}_y`], { name: `/${name}/MatMul` })],
      tensors: [weightOf({ varints: true })],
      outputs: [[`${name}_y`, 'F16', ['n', 32]]],
    });
  const nested = modelBytes(
    graph({
      nodes: [node('If', ['c'], ['y'], { then_branch: inner('a'), else_branch: inner('b') })],
      tensors: [tensor('c', 'I64', [1], BigInt64Array.of(1n))],
      inputs: [['x', 'F16', ['n', 32]]],
      outputs: [['y', 'F16', ['n', 32]]],
    }),
  );
  const plain = modelBytes(
    graph({
      nodes: [node('MatMul', ['x', 'w'], ['y'], { name: '/a/MatMul' })],
      tensors: [weightOf({})],
      inputs: [['x', 'F16', ['n', 32]]],
      outputs: [['y', 'F16', ['n', 32]]],
    }),
  );
  for (const preset of ['int4_wo_32', 'int8']) {
    const expected = (await written(t, quantizer, plain, preset)).report.tensors[0];
    const { report, bytes } = await written(t, quantizer, nested, preset);
    const found = report.tensors.filter(({ name }) => name === 'w');
    assert.equal(found.length, 2);
    for (const { error, layer } of found) assert.deepEqual(error, expected.error, layer);
    assert.deepEqual(
      found.map(({ layer }) => layer),
      ['a', 'b'],
    );
    await modelFor(t, quantizer, bytes);
  }
});

test('a model is opened without its weights', async (t) => {
  const quantizer = await quantizerFor(t);
  const big = noise(1 << 20, 1);
  const bytes = modelBytes(
    graph({
      nodes: [0, 1, 2].map((i) => node('MatMul', [`x${i}`, `w${i}`], [`x${i + 1}`], { name: `/l${i}/MatMul` })),
      tensors: [0, 1, 2].map((i) => tensor(`w${i}`, 'F32', [1024, 1024], big)),
      inputs: [['x0', 'F32', ['n', 1024]]],
      outputs: [['x3', 'F32', ['n', 1024]]],
    }),
  );
  let read = 0;
  const source = {
    size: bytes.length,
    name: 'big.onnx',
    read: async (offset, length) => {
      read += length;
      return bytes.slice(offset, offset + length);
    },
  };
  const model = await modelFor(t, quantizer, source);
  assert.deepEqual(namesOf(model), ['w0', 'w1', 'w2']);
  assert.ok(read < 600_000, `${read} of ${bytes.length} bytes`);
});

test('a model that would exceed 1.5 GiB gets external data by itself', async (t) => {
  const quantizer = await quantizerFor(t);
  const [count, size] = [6, 9216]; // 6 x 9216 x 9216 floats: 1.9 GiB, zeros all
  const payload = 4 * size * size;
  const varintOf = (value) => field(1, value).subarray(1);
  const parts = [];
  let at = 0;
  const add = (bytes, zeros = 0) => {
    parts.push({ begin: at, bytes });
    at += bytes.length + zeros;
  };
  const heads = Array.from({ length: count }, (_, i) => {
    const head = Buffer.concat([
      field(1, size),
      field(1, size),
      field(2, 1),
      field(8, `w${i}`),
      Uint8Array.of(0x4a),
      varintOf(payload),
    ]);
    return Buffer.concat([Uint8Array.of(0x2a), varintOf(head.length + payload), head]);
  });
  const rest = graph({
    nodes: heads.map((_, i) => node('MatMul', [`x${i}`, `w${i}`], [`x${i + 1}`], { name: `/l${i}/MatMul` })),
    inputs: [['x0', 'F32', ['n', size]]],
    outputs: [[`x${count}`, 'F32', ['n', size]]],
  });
  const graphBytes = heads.reduce((sum, head) => sum + head.length + payload, rest.length);
  add(
    Buffer.concat([
      field(1, 8),
      field(8, Buffer.concat([field(1, ''), field(2, 17)])),
      Uint8Array.of(0x3a),
      varintOf(graphBytes),
    ]),
  );
  for (const head of heads) add(head, payload);
  add(rest);
  const source = {
    size: at,
    name: 'large.onnx',
    read: async (offset, length) => {
      const bytes = new Uint8Array(length);
      for (const part of parts) {
        const from = Math.max(part.begin, offset);
        const to = Math.min(part.begin + part.bytes.length, offset + length);
        if (from < to) bytes.set(part.bytes.subarray(from - part.begin, to - part.begin), from - offset);
      }
      return bytes;
    },
  };
  const model = await modelFor(t, quantizer, source);
  assert.equal(model.tensors.length, count);
  const left = await quantizer.plan(model, { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['l*'] });
  assert.deepEqual(
    left.files.map(({ name }) => name),
    ['large.onnx_data', 'large.onnx'],
  );
  assert.equal(left.files[0].bytes, count * payload);
  assert.deepEqual(
    (await quantizer.plan(model, 'int8')).files.map(({ name }) => name),
    ['large_int8.onnx'],
  );
});
