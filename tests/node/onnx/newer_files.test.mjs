// Models that are newer than this library, or made by merging others: what is not understood is kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { field, graph, model, node, noise, tensor } from './model.mjs';
import { floats, named, written } from './written.mjs';

const inputs = [['x', 'F32', ['n', 64]]];
const outputs = [['y', 'F32', ['n', 64]]];
const product = node('MatMul', ['x', 'w'], ['y'], { name: '/a/MatMul' });
const one = (tensors, options) => model(graph({ nodes: [product], tensors, inputs, outputs }), options);
const square = (factor = 1) =>
  tensor(
    'w',
    'F32',
    [64, 64],
    noise(64 * 64, 1).map((value) => value * factor),
  );
const joined = (...parts) => new Uint8Array(Buffer.concat(parts));

/** The versions that the model imports of the default operator set. */
function versionsOf(bytes) {
  const found = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const payload = varint();
    if ((tag & 7) === 0) continue;
    const content = bytes.subarray(at, at + payload);
    at += payload;
    if (tag >> 3 === 8 && !Buffer.from(content).includes('microsoft')) found.push(content.at(-1));
  }
  return found;
}

test('an operator set may be imported twice in one version, and is raised in both places', async (t) => {
  const quantizer = await quantizerFor(t);
  const entry = (version) => field(8, joined(field(1, ''), field(2, version)));
  const twice = joined(one([square()], { opset: 13 }), entry(13));
  for (const onnx of [{}, { qdq: true }]) {
    const { bytes } = await written(t, quantizer, twice, 'int4_wo_32', { onnx });
    await modelFor(t, quantizer, bytes);
    assert.deepEqual(versionsOf(bytes), onnx.qdq ? [21, 21] : [13, 13]);
  }
  await assert.rejects(quantizer.open(joined(twice, entry(12))), {
    code: 'file-invalid',
    message: /two opset versions of domain "": 13 and 12/,
  });
});

test('tensors of unknown element types are carried along', async (t) => {
  const quantizer = await quantizerFor(t);
  const values = noise(100, 3);
  for (const type of [27, 28, 31, 200, 300]) {
    const unknown = joined(
      field(1, 33),
      field(1, 7),
      field(2, type),
      field(8, 'u'),
      field(9, new Uint8Array(values.buffer)),
    );
    const { bytes } = await written(t, quantizer, one([square(), unknown]), 'int8');
    assert.ok(Buffer.from(bytes).includes(Buffer.from(unknown)), `type ${type}`);
    const again = await modelFor(t, quantizer, bytes);
    assert.ok(again.tensors.some(({ name }) => name === 'w_quantized'));
  }
  const undefinedType = joined(field(1, 4), field(8, 'u'), field(9, new Uint8Array(16)));
  await assert.rejects(quantizer.open(one([square(), undefinedType])), { code: 'file-invalid', message: /UNDEFINED/ });
});

test('weights of any magnitude keep their precision', async (t) => {
  const quantizer = await quantizerFor(t);
  const sqnrOf = async (config, factor, options) => {
    const { report } = await written(t, quantizer, one([square(factor)]), config, options);
    return named(report.tensors, 'w').error.sqnrDb;
  };
  for (const [config, onnx] of [
    ['int8'],
    ['int8_dynamic'],
    ['int8', { qdq: true }],
    ['int4_wo_32'],
    ['uint4_wo_32'],
    ['int8_per_tensor'],
  ]) {
    const usual = await sqnrOf(config, 1, { onnx });
    for (const factor of [2 ** -17, 2 ** -20, 2 ** -40, 2 ** 20])
      assert.ok(Math.abs((await sqnrOf(config, factor, { onnx })) - usual) < 1e-3, `${config} ${factor}`);
  }
  const { bytes } = await written(t, quantizer, one([square(0)]), 'int8');
  const model = await modelFor(t, quantizer, bytes);
  assert.ok(floats(bytes, named(model.tensors, 'w_scale')).every((scale) => scale === 2 ** -23));
});
