// ONNX models that are quantized already: their weights are decoded and quantized again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formsOf } from '../../interop/onnx/builds_forms.mjs';
import { modelFor, quantizerFor } from '../scratch.mjs';
import { graph, model, node, tensor } from './model.mjs';
import { contents, named, written } from './written.mjs';

test('every operator form that is written is read back, and quantized again as its float model is', async (t) => {
  const quantizer = await quantizerFor(t);
  const decoded = new Set();
  for (const { name: model, bytes: source, forms } of formsOf())
    for (const [form, { config, onnx, isStatic }] of Object.entries(forms)) {
      if (isStatic) continue; // needs captured inputs; tests/node/onnx/foreign_codes.test.mjs has static models
      const name = `${model}: ${form}`;
      const first = await written(t, quantizer, source, config, { onnx });
      const plain = await written(t, quantizer, first.bytes, quantizer.presetConfig('int8', { exclude: ['*'] }));
      assert.equal(plain.report.totals.quantized, 0, name);
      assert.ok(!plain.report.diagnostics.some(({ code }) => code === 'quantized-already'), name);
      const [reference, codes, floats] = await Promise.all(
        [source, first.bytes, plain.bytes].map((bytes) => modelFor(t, quantizer, bytes)),
      );
      const same = await quantizer.compare(codes, floats);
      assert.ok(same.tensors.length > 0 && same.tensors.every(({ error }) => error.mse === 0), name);
      const { tensors, diagnostics } = await quantizer.compare(reference, codes);
      assert.deepEqual([...diagnostics, ...same.diagnostics], [], name);
      for (const { name: tensor, error } of tensors) {
        const { action, error: lost } = named(first.report.tensors, tensor);
        const isCodes = action === 'quantize' && named(codes.tensors, tensor) === undefined; // else its values are there, too
        if (isCodes) decoded.add(form);
        const difference = isCodes ? Math.abs(error.sqnrDb - lost.sqnrDb) : error.mse;
        assert.ok(difference < 1e-3, `${name} ${tensor} ${error.sqnrDb} ${lost?.sqnrDb}`);
      }
      for (const next of ['int8', 'int8_dynamic', 'uint4_wo_32']) {
        const again = await written(t, quantizer, first.bytes, next);
        const fromFloat = await written(t, quantizer, plain.bytes, next);
        assert.ok(again.report.diagnostics.some(({ code }) => code === 'requantized'));
        const [left, right] = [again, fromFloat].map(({ bytes }) => contents(t, quantizer, bytes));
        assert.deepEqual(await left, await right, `${name} ${next}`);
      }
    }
  assert.ok(decoded.size > 30, [...decoded].join(', '));
});

test('the integers of quantize_dynamic, with zero points as varints, are decoded; other forms are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const codes = Int8Array.from({ length: 64 * 64 }, (_, i) => ((i * 37) % 255) - 127);
  const scale = Float32Array.of(0.01);
  const nodes = [
    node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z']),
    node('MatMulInteger', ['q', 'w_quantized', 'z', 'w_zero_point'], ['i'], { name: '/a/MatMul_quant' }),
    node('Cast', ['i'], ['c'], { to: 1 }),
    node('Mul', ['s', 'w_scale'], ['m']),
    node('Mul', ['c', 'm'], ['y']),
  ];
  const one = (zero) =>
    model(
      graph({
        nodes,
        tensors: [
          tensor('w_quantized', 'I8', [64, 64], codes),
          tensor('w_scale', 'F32', [], scale),
          tensor('w_zero_point', 'I8', [], [zero], { varints: true }),
        ],
        inputs: [['x', 'F32', ['n', 64]]],
        outputs: [['y', 'F32', ['n', 64]]],
      }),
    );
  const float = (zero) =>
    model(
      graph({
        nodes: [node('MatMul', ['x', 'w'], ['y'], { name: '/a/MatMul' })],
        tensors: [
          tensor(
            'w',
            'F32',
            [64, 64],
            Float32Array.from(codes, (code) => (code - zero) * scale[0]),
          ),
        ],
        inputs: [['x', 'F32', ['n', 64]]],
        outputs: [['y', 'F32', ['n', 64]]],
      }),
    );
  for (const zero of [0, 3, -3, 127, -128])
    for (const config of ['int8', 'int8_dynamic', 'int4_wo_32']) {
      const bytes = (await written(t, quantizer, one(zero), config)).bytes;
      const expected = (await written(t, quantizer, float(zero), config)).bytes;
      const [left, right] = [await modelFor(t, quantizer, bytes), await modelFor(t, quantizer, expected)];
      const valuesOf = (file, of) =>
        of.tensors
          .filter(({ name }) => name.startsWith('w_'))
          .map(({ name, begin, end }) => [name, Buffer.from(file.slice(begin, end)).toString('hex')])
          .sort();
      assert.deepEqual(valuesOf(bytes, left), valuesOf(expected, right), `${zero} ${config}`);
      assert.doesNotMatch(
        Buffer.from(bytes).toString('latin1'),
        config === 'int8_dynamic' ? /_quant_quant/ : /MatMulInteger/,
      );
    }
  const unknown = model(
    graph({
      nodes: [node('MatMulFpQ4', ['x', 'w', 'k'], ['y'], { domain: 'com.microsoft' })],
      tensors: [tensor('w', 'U8', [4096], Uint8Array.from(codes)), tensor('k', 'I64', [2], BigInt64Array.of(64n, 64n))],
      inputs: [['x', 'F32', ['n', 64]]],
      outputs: [['y', 'F32', ['n', 64]]],
    }),
  );
  await assert.rejects(written(t, quantizer, unknown, 'int8'), {
    code: 'nothing-quantized',
    message: /quantized already, in a way that is not decoded: MatMulFpQ4 of com\.microsoft reads it/,
  });
});
