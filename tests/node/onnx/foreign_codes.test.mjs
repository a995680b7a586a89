// Models that onnxruntime quantized itself (tests/files/onnx_quantized): their weights are decoded to the bit, or named.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { files, modelFor, quantizerFor } from '../scratch.mjs';
import { contents, named, written } from './written.mjs';

const folder = join(files, 'onnx_quantized');
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
/** Weights of 16 bits, and zero points that are floats. */
const undecoded = ['qdq_layers_int16', 'n_bits_hqq'];

test('weights that onnxruntime quantized have the values that numpy gives', async (t) => {
  const quantizer = await quantizerFor(t);
  const models = readdirSync(folder).filter((name) => name.endsWith('.onnx'));
  assert.deepEqual(models.map((name) => name.slice(0, -5)).sort(), Object.keys(expected).sort());
  let count = 0;
  for (const name of Object.keys(expected)) {
    const source = readFileSync(join(folder, `${name}.onnx`));
    if (undecoded.includes(name)) continue;
    const plain = await written(t, quantizer, source, quantizer.presetConfig('int8', { exclude: ['*'] }));
    assert.ok(!plain.report.diagnostics.some(({ code }) => code === 'quantized-already'), name);
    const { tensors } = await modelFor(t, quantizer, plain.bytes);
    for (const [weight, { shape, sha256 }] of Object.entries(expected[name])) {
      const tensor = named(tensors, weight);
      assert.deepEqual([tensor?.dtype, tensor?.shape], ['F32', shape], `${name} ${weight}`);
      const values = plain.bytes.subarray(tensor.begin, tensor.end);
      assert.equal(createHash('sha256').update(values).digest('hex'), sha256, `${name} ${weight}`);
      ++count;
    }
    for (const preset of ['int8', 'uint4_wo_32']) {
      const again = await written(t, quantizer, source, preset);
      const fromFloat = await written(t, quantizer, plain.bytes, preset);
      assert.ok(again.report.totals.quantized > 0, name);
      assert.deepEqual(
        await contents(t, quantizer, again.bytes),
        await contents(t, quantizer, fromFloat.bytes),
        `${name} ${preset}`,
      );
    }
  }
  assert.ok(count > 60, `${count}`);
});

test('codes that have no decoder stay codes, and are named with their operator', async (t) => {
  const quantizer = await quantizerFor(t);
  const [int16, hqq] = undecoded.map((name) => readFileSync(join(folder, `${name}.onnx`)));
  await assert.rejects(written(t, quantizer, int16, 'int8'), {
    code: 'nothing-quantized',
    where: 'table.weight_quantized',
    message: /quantized already, in a way that is not decoded: DequantizeLinear reads it/,
  });
  const before = await modelFor(t, quantizer, hqq);
  const { bytes, report } = await written(t, quantizer, hqq, 'int8');
  const { where, message } = report.diagnostics.find(({ code }) => code === 'quantized-already');
  assert.equal(where, 'up_Q4');
  assert.match(message, /^is the first of 1 tensors .*: MatMulNBits of com\.microsoft reads it$/);
  const after = await modelFor(t, quantizer, bytes);
  const [left, right] = [before, after].map(({ tensors }) => named(tensors, where));
  assert.deepEqual(bytes.subarray(right.begin, right.end), new Uint8Array(hqq).subarray(left.begin, left.end));
});
