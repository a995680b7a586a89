// ONNX: open, plan, quantize in every form. Runtimes are in tests/interop/onnx/onnx.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { convolutions, noise, twoLayers } from './model.mjs';
import { floats, named, namesOf, written } from './written.mjs';

/** Values of a MatMulNBits weight of 4 bits, [N, K] from codes [N, groups, group / 2]. */
function unpacked(bytes, tensors, name, columns, group) {
  const codes = bytes.subarray(named(tensors, `${name}_Q4`).begin, named(tensors, `${name}_Q4`).end);
  const scales = floats(bytes, named(tensors, `${name}_scales`));
  const points = named(tensors, `${name}_zero_points`);
  const groups = Math.ceil(columns / group);
  const rows = scales.length / groups;
  const nibble = (at, row, stride, i) => (bytes[at + row * stride + (i >> 1)] >> (i % 2 ? 4 : 0)) & 15;
  return Float32Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const at = row * groups * group + column;
    const code = (codes[at >> 1] >> (at % 2 ? 4 : 0)) & 15;
    const g = Math.floor(column / group);
    const zero = points ? nibble(points.begin, row, (groups + 1) >> 1, g) : 8;
    return (code - zero) * scales[row * groups + g];
  });
}

test('opened: weights with their layers and classes, by the nodes that use them', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes, weights } = twoLayers();
  const model = await modelFor(t, quantizer, bytes);
  assert.equal(model.format, 'onnx');
  const rows = model.tensors.map(({ name, layer, layerType, dtype, shape }) => [name, layer, layerType, dtype, shape]);
  assert.deepEqual(rows, [
    ['up', 'mlp.up_proj', 'Linear', 'F32', [64, 96]],
    ['down.weight', 'down', 'Linear', 'F32', [32, 96]],
    ['embed_tokens.weight', 'embed_tokens', 'Embedding', 'F32', [40, 64]],
    ['down.bias', 'down', '', 'F32', [32]],
  ]);
  for (const [name, { data }] of Object.entries(weights)) {
    assert.deepEqual(floats(bytes, named(model.tensors, name)), data, name);
  }
});

test('int4 in groups becomes MatMulNBits, transposed where MatMul has [K, N]', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes, weights } = twoLayers();
  for (const [preset, isSymmetric] of [
    ['int4_wo_32', true],
    ['uint4_wo_32', false],
  ]) {
    const { bytes: out, report } = await written(t, quantizer, bytes, preset);
    assert.equal(report.format, 'onnx');
    assert.deepEqual(report.files, [{ name: 'model_q4.onnx', bytes: out.length }]);
    const model = await modelFor(t, quantizer, out);
    assert.equal(namesOf(model).includes('up_zero_points'), !isSymmetric);
    const [up, down] = [weights.up.data, weights['down.weight'].data];
    const byRows = Float32Array.from({ length: up.length }, (_, i) => up[(i % 64) * 96 + Math.floor(i / 64)]);
    for (const [name, columns, original] of [
      ['up', 64, byRows],
      ['down.weight', 96, down],
    ]) {
      const values = unpacked(out, model.tensors, name, columns, 32);
      const scales = floats(out, named(model.tensors, `${name}_scales`));
      let noiseSum = 0;
      let extremes = 0;
      for (const [i, value] of values.entries()) {
        const scale = scales[Math.floor(i / 32)];
        // The lowest code is the group's extreme; the highest stands for up to one step more on the other side.
        const isHighest = isSymmetric && Math.abs(value - 7 * scale) < 1e-7;
        const steps = isHighest ? 1 : 0.5001;
        assert.ok(Math.abs(value - original[i]) <= Math.abs(scale) * steps + 1e-7, `${name} ${i}`);
        if (Math.abs(original[i] + 8 * scale) < 1e-7 && Math.abs(value - original[i]) < 1e-7) ++extremes;
        noiseSum += (value - original[i]) ** 2;
      }
      if (isSymmetric) assert.ok(extremes >= scales.length, `${name}: the extreme of each group is a code`);
      const { error } = named(report.tensors, name);
      assert.ok(Math.abs(error.mse - noiseSum / values.length) < 1e-9, `${error.mse} ${noiseSum / values.length}`);
    }
    assert.equal(named(report.tensors, 'embed_tokens.weight').action, 'quantize');
    assert.deepEqual(floats(out, named(model.tensors, 'down.bias')), noise(32, 4));
  }
});

test('threads, budgets and targets do not change a byte', async (t) => {
  const folder = scratchFolder(t);
  const { bytes } = twoLayers();
  for (const config of ['uint4_wo_32', 'int8', 'int8_dynamic']) {
    const all = [];
    for (const options of [{ threads: 0 }, { threads: 2, memoryBudgetBytes: 128 * 1024 * 1024 }]) {
      const quantizer = await quantizerFor(t, options);
      all.push((await written(t, quantizer, bytes, config)).bytes);
      const model = await modelFor(t, quantizer, bytes);
      const target = join(folder, `${config}-${options.threads}.onnx`);
      await quantizer.quantizeModel(model, config, { target });
      all.push(new Uint8Array(readFileSync(target)));
    }
    for (const other of all) assert.deepEqual(other, all[0], config);
  }
});

test('a config selects by layer and class; groups need not divide a row of MatMulNBits', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes } = twoLayers();
  const config = {
    global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 64 } },
    layer_quant_config: { 'mlp.*': { weight: { dtype: 'int8', qscheme: 'per_group', group_size: 128 } } },
    layer_type_quant_config: { Embedding: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 32 } } },
  };
  const { report, bytes: out } = await written(t, quantizer, bytes, config);
  const text = (name) => named(report.tensors, name).reason.text;
  assert.match(text('up'), /pattern "mlp\.\*".*; as MatMulNBits/);
  assert.match(text('down.weight'), /global_quant_config; as MatMulNBits/);
  assert.match(text('embed_tokens.weight'), /Embedding.*; as Gather of codes/);
  const model = await modelFor(t, quantizer, out);
  assert.deepEqual(named(model.tensors, 'up_Q8').shape, [96, 2, 32]);
  assert.deepEqual(named(model.tensors, 'down.weight_Q4').shape, [32, 2, 32]);
  assert.deepEqual(named(model.tensors, 'embed_tokens.weight_Q4').shape, [40, 2, 16]);
  assert.ok(report.tensors.every(({ error, action }) => action === 'copy' || error.sqnrDb > 20));
  const excluded = await quantizer.plan(await modelFor(t, quantizer, bytes), {
    ...config,
    exclude: ['down', 'nothing'],
  });
  assert.equal(named(excluded.tensors, 'down.weight').reason.rule, 'excluded');
  assert.ok(excluded.diagnostics.some(({ code, where }) => code === 'pattern-unused' && where === '/exclude/1'));
});

test('int8: Cast and Mul, for convolutions, too; scales per output channel', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes: out, report } = await written(t, quantizer, twoLayers({ opset: 13 }).bytes, 'int8');
  const model = await modelFor(t, quantizer, out);
  assert.deepEqual(named(model.tensors, 'up_quantized').shape, [64, 96]);
  assert.deepEqual(named(model.tensors, 'up_scale').shape, [1, 96], 'MatMul has output channels last');
  assert.deepEqual(named(model.tensors, 'down.weight_scale').shape, [32, 1]);
  assert.equal(report.files[0].name, 'model_int8.onnx');
  const { report: conv, bytes: convBytes } = await written(t, quantizer, convolutions(), 'int8');
  const convModel = await modelFor(t, quantizer, convBytes);
  assert.deepEqual(named(convModel.tensors, 'conv.weight_scale').shape, [8, 1, 1, 1]);
  assert.deepEqual(named(convModel.tensors, 'up.weight_scale').shape, [1, 4, 1, 1], 'ConvTranspose has [in, out, ...]');
  assert.equal(conv.totals.quantized, 2);
});

test('dynamic inputs become integer operators, where there are any', async (t) => {
  const quantizer = await quantizerFor(t);
  const { report } = await written(t, quantizer, twoLayers().bytes, 'int8_dynamic');
  assert.match(named(report.tensors, 'up').reason.text, /as MatMulInteger/);
  assert.ok(report.diagnostics.some(({ code }) => code === 'inputs-uint8'));
  const conv = await written(t, quantizer, convolutions(), 'int8_dynamic');
  assert.match(named(conv.report.tensors, 'conv.weight').reason.text, /ConvInteger/);
  assert.match(named(conv.report.tensors, 'up.weight').reason.text, /as Cast and Mul; .*stay in float/);
});

test('Gemm with transB: its weight is transposed for MatMulInteger, and codes and errors stay the same', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes } = twoLayers({ opset: 13 });
  const original = await modelFor(t, quantizer, bytes);
  for (const [dynamic, still] of [
    ['int8_dynamic', 'int8'],
    [{ dtype: 'uint8', qscheme: 'per_tensor', symmetric: false }, null],
  ]) {
    const input_tensors = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: true };
    const withInputs = still ? dynamic : { global_quant_config: { weight: dynamic, input_tensors } };
    const integer = await written(t, quantizer, bytes, withInputs);
    const linear = await written(t, quantizer, bytes, still ?? { global_quant_config: { weight: dynamic } });
    assert.match(named(integer.report.tensors, 'down.weight').reason.text, /as MatMulInteger/);
    const [turned, plain] = [integer, linear].map(({ bytes: file }) => modelFor(t, quantizer, file));
    const [codes, expected] = [
      named((await turned).tensors, 'down.weight_quantized'),
      named((await plain).tensors, 'down.weight_quantized'),
    ];
    assert.deepEqual(
      [codes.shape, expected.shape],
      [
        [96, 32],
        [32, 96],
      ],
    );
    const [a, b] = [integer.bytes.subarray(codes.begin), linear.bytes.subarray(expected.begin)];
    for (let i = 0; i < 32 * 96; ++i) assert.equal(a[i], b[(i % 32) * 96 + Math.floor(i / 32)], `code ${i}`);
    const compared = await quantizer.compare(original, await turned);
    // Sums are taken in another order.
    const { mse } = named(linear.report.tensors, 'down.weight').error;
    assert.ok(Math.abs(named(integer.report.tensors, 'down.weight').error.mse - mse) <= mse * 1e-6);
    assert.ok(Math.abs(named(compared.tensors, 'down.weight').error.mse - mse) <= mse * 1e-6);
  }
});

test('qdq: DequantizeLinear throughout; a preset falls back, a config is followed exactly', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, twoLayers({ opset: 21 }).bytes);
  const plan = await quantizer.plan(model, 'int4_wo_128', { onnx: { qdq: true } });
  assert.match(named(plan.tensors, 'up').reason.text, /128 does not divide 64, so group size 64; as DequantizeLinear/);
  assert.equal(named(plan.tensors, 'down.weight').spec.group_size, 32);
  const config = { global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 128 } } };
  await assert.rejects(() => quantizer.plan(model, config, { onnx: { qdq: true } }), {
    code: 'group-size-invalid',
    where: 'up',
  });
  const { report } = await written(t, quantizer, twoLayers({ opset: 21 }).bytes, 'uint4_wo_32', {
    onnx: { qdq: true },
  });
  assert.ok(named(report.tensors, 'up').error.sqnrDb > 22);
  assert.ok(named(report.tensors, 'down.weight').error.sqnrDb > 22);
});
