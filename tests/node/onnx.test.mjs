// ONNX: open, plan, quantize in every form, external data, what is refused. Runtimes are in tests/interop/onnx.mjs.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from './cli_process.mjs';
import { convolutions, field, graph, model as modelBytes, node, noise, tensor, twoLayers } from './onnx_model.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from './scratch.mjs';

const named = (tensors, name) => tensors.find((tensor) => tensor.name === name);
const namesOf = ({ tensors }) => tensors.map(({ name }) => name);

async function written(t, quantizer, source, config, options = {}) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, ...options });
  return { bytes: out.bytes(), report };
}

const floats = (bytes, { begin, end }) => new Float32Array(bytes.slice(begin, end).buffer);

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
      const largest = Math.max(...scales);
      let noiseSum = 0;
      for (const [i, value] of values.entries()) {
        assert.ok(Math.abs(value - original[i]) <= largest * 0.5001 + 1e-7, `${name} ${i}`);
        noiseSum += (value - original[i]) ** 2;
      }
      const { error } = named(report.tensors, name);
      assert.ok(Math.abs(error.mse - noiseSum / values.length) < 1e-9, `${error.mse} ${noiseSum / values.length}`);
    }
    assert.equal(named(report.tensors, 'embed_tokens.weight').action, 'copy');
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

test('a config decides by layer and class; groups need not divide a row of MatMulNBits', async (t) => {
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
  assert.match(text('embed_tokens.weight'), /Embedding.*; as GatherBlockQuantized/);
  const model = await modelFor(t, quantizer, out);
  assert.deepEqual(named(model.tensors, 'up_Q8').shape, [96, 1, 128]);
  assert.deepEqual(named(model.tensors, 'down.weight_Q4').shape, [32, 2, 32]);
  assert.deepEqual(named(model.tensors, 'embed_tokens.weight_Q4').shape, [40, 32]);
  assert.ok(report.tensors.every(({ error, action }) => action === 'copy' || error.sqnrDb > 20));
  const excluded = quantizer.plan(await modelFor(t, quantizer, bytes), { ...config, exclude: ['down', 'nothing'] });
  assert.equal(named(excluded.tensors, 'down.weight').reason.rule, 'excluded');
  assert.ok(excluded.diagnostics.some(({ code, where }) => code === 'pattern-unused' && where === '/exclude/1'));
});

test('int8: DequantizeLinear, for convolutions, too; scales per output channel', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes: out, report } = await written(t, quantizer, twoLayers({ opset: 13 }).bytes, 'int8');
  const model = await modelFor(t, quantizer, out);
  assert.deepEqual(named(model.tensors, 'up_quantized').shape, [64, 96]);
  assert.deepEqual(named(model.tensors, 'up_scale').shape, [96], 'MatMul has output channels last');
  assert.deepEqual(named(model.tensors, 'down.weight_scale').shape, [32]);
  assert.equal(report.files[0].name, 'model_int8.onnx');
  const { report: conv, bytes: convBytes } = await written(t, quantizer, convolutions(), 'int8');
  const convModel = await modelFor(t, quantizer, convBytes);
  assert.deepEqual(named(convModel.tensors, 'conv.weight_scale').shape, [8]);
  assert.deepEqual(named(convModel.tensors, 'up.weight_scale').shape, [4], 'ConvTranspose has [in, out, ...]');
  assert.equal(conv.totals.quantized, 2);
});

test('dynamic inputs become integer operators, where there are any', async (t) => {
  const quantizer = await quantizerFor(t);
  const { report } = await written(t, quantizer, twoLayers().bytes, 'int8_dynamic');
  assert.match(named(report.tensors, 'up').reason.text, /as MatMulInteger/);
  assert.ok(report.diagnostics.some(({ code }) => code === 'inputs-uint8'));
  const conv = await written(t, quantizer, convolutions(), 'int8_dynamic');
  assert.match(named(conv.report.tensors, 'conv.weight').reason.text, /ConvInteger/);
  assert.match(named(conv.report.tensors, 'up.weight').reason.text, /as DequantizeLinear; .*stay in float/);
});

test('Gemm with transB: its weight is turned for MatMulInteger, codes and errors stay what they were', async (t) => {
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

test('qdq: DequantizeLinear throughout; a preset falls back, a config is held to what it says', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, twoLayers({ opset: 21 }).bytes);
  const plan = quantizer.plan(model, 'int4_wo_128', { onnx: { qdq: true } });
  assert.match(named(plan.tensors, 'up').reason.text, /128 does not divide 64, so group size 64; as DequantizeLinear/);
  assert.equal(named(plan.tensors, 'down.weight').spec.group_size, 32);
  const config = { global_quant_config: { weight: { dtype: 'int4', qscheme: 'per_group', group_size: 128 } } };
  assert.throws(() => quantizer.plan(model, config, { onnx: { qdq: true } }), {
    code: 'group-size-invalid',
    where: 'up',
  });
  const { report } = await written(t, quantizer, twoLayers({ opset: 21 }).bytes, 'uint4_wo_32', {
    onnx: { qdq: true },
  });
  assert.ok(named(report.tensors, 'up').error.sqnrDb > 22);
  assert.ok(named(report.tensors, 'down.weight').error.sqnrDb > 22);
});

test('what ONNX cannot hold: a preset leaves it, a config is refused with every name', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, convolutions());
  assert.throws(() => quantizer.plan(model, 'int4_wo_32'), { code: 'format-unsupported', message: /matrices only/ });
  assert.throws(
    () => quantizer.plan(model, { global_quant_config: { weight: { dtype: 'fp8_e4m3' } } }),
    (error) => {
      assert.equal(error.code, 'format-unsupported');
      assert.deepEqual(
        error.diagnostics.map(({ where }) => where),
        ['conv.weight', 'up.weight'],
      );
      return /integers only.*and 1 more/.test(error.message);
    },
  );
  const two = await modelFor(t, quantizer, twoLayers().bytes);
  for (const [config, options, expected] of [
    ['q4_k_m', {}, { code: 'format-unsupported', message: /GGUF.*int4_wo_32/ }],
    ['int8', { format: 'quark' }, { code: 'format-unsupported', message: /ONNX models/ }],
    ['int4_fp8', {}, { code: 'format-unsupported', message: /one spec/ }],
  ]) {
    assert.throws(() => quantizer.plan(two, config, options), expected, String(config));
  }
  await assert.rejects(
    quantizer.quantizeModel(
      two,
      { global_quant_config: { weight: { dtype: 'int8' } }, algo_config: [{ name: 'gptq' }] },
      {
        target: memoryStream().stream,
        calibration: { tokens: { data: [1, 2], shape: [1, 2] } },
      },
    ),
    { code: 'not-implemented', message: /ONNX models/ },
  );
  await assert.rejects(quantizer.evaluate(two, { tokens: { data: [1, 2], shape: [1, 2] } }), {
    code: 'not-implemented',
  });
});

test('external data: read from beside the model, written beside it', async (t) => {
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

test('weights that stand as varints, and in Constant nodes and nested graphs', async (t) => {
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

test('compare finds what quantizing reported, in every form', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const embeddings = (spec) => ({
    global_quant_config: { weight: spec },
    layer_type_quant_config: { Embedding: { weight: spec } },
  });
  const group = (dtype, group_size, symmetric) => ({ dtype, qscheme: 'per_group', group_size, symmetric });
  const two = twoLayers({ opset: 21 }).bytes;
  for (const [source, config, onnx] of [
    [two, embeddings(group('int4', 32, true)), {}],
    [two, embeddings(group('uint4', 32, false)), { externalData: true }],
    [two, { global_quant_config: { weight: group('int4', 64, false) } }, {}],
    [two, embeddings(group('uint4', 32, false)), { qdq: true }],
    [two, embeddings({ dtype: 'int4', qscheme: 'per_channel', ch_axis: 0 }), {}],
    [two, 'int8', {}],
    [two, 'int8_per_tensor', {}],
    [two, 'int8_dynamic', {}],
    [convolutions(), 'int8', {}],
    [convolutions(), 'int8_dynamic', {}],
  ]) {
    const reference = await modelFor(t, quantizer, source);
    const target = join(folder, 'q.onnx');
    const report = await quantizer.quantizeModel(reference, config, { target, onnx, overwrite: true });
    const quantized = await modelFor(t, quantizer, target);
    const compared = await quantizer.compare(reference, quantized);
    assert.deepEqual(compared.diagnostics, []);
    const text = JSON.stringify(config);
    assert.equal(compared.tensors.length, report.tensors.filter(({ layerType }) => layerType).length, text);
    for (const { name, error } of compared.tensors) {
      const expected = named(report.tensors, name).error;
      assert.ok(
        Math.abs(error.mse - (expected?.mse ?? 0)) <= 1e-6 * error.mse,
        `${text} ${name} ${error.mse} ${expected?.mse}`,
      );
    }
  }
  const other = await modelFor(t, quantizer, convolutions());
  const { tensors, diagnostics } = await quantizer.compare(await modelFor(t, quantizer, two), other);
  assert.equal(tensors.length, 0);
  assert.deepEqual(
    diagnostics.map(({ where }) => where),
    ['up', 'down.weight', 'embed_tokens.weight'],
  );
});

test('broken files and values are refused with their place; nothing is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const { bytes } = twoLayers();
  for (const length of [0, 1, 7, 100, bytes.length - 1]) {
    writeFileSync(join(folder, 'cut.onnx'), bytes.subarray(0, length));
    await assert.rejects(quantizer.open(join(folder, 'cut.onnx')), { name: 'QuantizationError', message: /cut\.onnx/ });
  }
  for (const location of ['../up.bin', '/etc/passwd', 'a\\b', 'C:x']) {
    await assert.rejects(quantizer.open(twoLayers({ location }).bytes), { code: 'file-invalid' }, location);
  }
  const nan = bytes.slice();
  const model = await modelFor(t, quantizer, nan);
  const { begin } = named(model.tensors, 'up');
  new DataView(nan.buffer).setUint32(begin + 4 * (96 * 5 + 7), 0x7fc00000, true);
  const target = join(folder, 'nan.onnx');
  for (const config of ['int4_wo_32', 'int8']) {
    await assert.rejects(quantizer.quantizeModel(model, config, { target }), {
      code: 'value-not-finite',
      where: 'up',
      message: /row 5, column 7/,
    });
  }
  const aborted = new AbortController();
  const run = quantizer.quantizeModel(await modelFor(t, quantizer, bytes), 'int8', {
    target,
    signal: aborted.signal,
    onProgress: () => aborted.abort(),
  });
  await assert.rejects(run, { name: 'AbortError' });
  assert.deepEqual(readdirSync(folder), ['cut.onnx']);
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
  const left = quantizer.plan(model, { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['l*'] });
  assert.deepEqual(
    left.files.map(({ name }) => name),
    ['large.onnx_data', 'large.onnx'],
  );
  assert.equal(left.files[0].bytes, count * payload);
  assert.deepEqual(
    quantizer.plan(model, 'int8').files.map(({ name }) => name),
    ['large_int8.onnx'],
  );
});

test('command line: quantize, plan and inspect; --qdq, --accuracy-level, --external-data', async (t) => {
  const folder = scratchFolder(t);
  const input = join(folder, 'model.onnx');
  writeFileSync(input, twoLayers({ opset: 21 }).bytes);
  const out = join(folder, 'out.onnx');
  const { code, stderr, document } = await cliJson([
    'quantize',
    input,
    '-o',
    out,
    '--preset',
    'int4_wo_32',
    '--accuracy-level',
    '4',
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(document.format, 'onnx');
  assert.match(readFileSync(out, 'latin1'), /accuracy_level/);
  const text = await cli(['quantize', input, '-o', out, '-p', 'int8', '--external-data', '--force', '-x', 'down']);
  assert.equal(text.code, 0, text.stderr);
  assert.match(text.stdout, /out\.onnx_data/);
  assert.match(text.stdout, /onnxruntime/);
  const { document: planned } = await cliJson(['plan', input, '-p', 'int4_wo_32', '--qdq']);
  assert.match(named(planned.tensors, 'up').reason.text, /DequantizeLinear/);
  const { document: inspected } = await cliJson(['inspect', out]);
  assert.ok(namesOf(inspected).includes('up_quantized'));
  const wrong = await cli(['quantize', input, '-o', join(folder, 'x.onnx'), '-p', 'int8', '--accuracy-level', '9']);
  assert.equal(wrong.code, 2);
});

test('a folder is laid out as transformers.js has it, dtype beside dtype', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = join(folder, 'source');
  mkdirSync(source);
  writeFileSync(join(source, 'model_fp32.onnx'), twoLayers({ opset: 13 }).bytes);
  writeFileSync(join(source, 'config.json'), '{"model_type": "llama", "transformers.js_config": {"dtype": "q4"}}');
  writeFileSync(join(source, 'tokenizer.json'), '{}');
  const model = await modelFor(t, quantizer, source);
  const target = join(folder, 'target');
  const int2 = { global_quant_config: { weight: { dtype: 'int2', qscheme: 'per_group', group_size: 32 } } };
  for (const [config, name, onnx] of [
    ['int4_wo_32', 'model_q4.onnx'],
    [int2, 'model_q2.onnx'],
    ['int8_dynamic', 'model_quantized.onnx'],
    ['int8', 'model_int8.onnx', { externalData: true }],
  ]) {
    const report = await quantizer.quantizeModel(model, config, { target, overwrite: true, ...(onnx && { onnx }) });
    const names = report.files.map((file) => file.name);
    const files = onnx ? [`onnx/${name}_data`, `onnx/${name}`] : [`onnx/${name}`];
    assert.deepEqual(names, [...files, 'tokenizer.json', 'config.json']);
    const written = await modelFor(t, quantizer, join(target, 'onnx', name));
    assert.equal(written.files.length, files.length, 'external data are named from where the model is');
  }
  assert.deepEqual(readdirSync(join(target, 'onnx')).sort(), [
    'model_int8.onnx',
    'model_int8.onnx_data',
    'model_q2.onnx',
    'model_q4.onnx',
    'model_quantized.onnx',
  ]);
  assert.deepEqual(JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')), {
    model_type: 'llama',
    'transformers.js_config': { dtype: 'q4', use_external_data_format: { 'model_int8.onnx': 1 } },
  });
  await assert.rejects(quantizer.quantizeModel(model, 'int8', { target }), { code: 'target-exists' });
  const signal = AbortSignal.abort(new Error('enough'));
  const none = join(folder, 'none');
  mkdirSync(none);
  await assert.rejects(quantizer.quantizeModel(model, 'int8', { target: none, signal }), /enough/);
  const controller = new AbortController();
  const onProgress = () => controller.abort(new Error('enough'));
  await assert.rejects(
    quantizer.quantizeModel(model, 'int8', { target: none, signal: controller.signal, onProgress }),
    /enough/,
  );
  assert.deepEqual(readdirSync(none), [], 'a run that ends early takes the inner folder with it');
});
