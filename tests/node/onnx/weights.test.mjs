// ONNX: which tensors are weights, whatever lies between them and their layers; what is said of the others; tables that two layers share.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { graph, model, node, noise, tensor } from './model.mjs';
import { named, namesOf, written } from './written.mjs';

const width = 64;
const spec = (rest) => ({ global_quant_config: { weight: rest }, exclude: [] });
const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
const weight = (name = 'w', shape = [width, width]) =>
  tensor(
    name,
    'F32',
    shape,
    noise(
      shape.reduce((a, b) => a * b, 1),
      3,
    ),
  );
const oneProduct = (nodes, { tensors = [weight()], inputs = [], ...options } = {}) =>
  model(
    graph({ nodes, tensors, inputs: [['x', 'F32', ['n', width]], ...inputs], outputs: [['y', 'F32', ['n', width]]] }),
    options,
  );

test('weights behind Identity, Transpose and Reshape are quantized, and compared', async (t) => {
  const quantizer = await quantizerFor(t);
  const shape = tensor('shape', 'I64', [2], BigInt64Array.from([width, -1n].map(BigInt)));
  const bytes = oneProduct(
    [
      node('Reshape', ['w', 'shape'], ['a']),
      node('Identity', ['a'], ['b']),
      node('Transpose', ['b'], ['c'], { perm: [1, 0] }),
      node('MatMul', ['x', 'c'], ['y'], { name: '/up/MatMul' }),
    ],
    { tensors: [weight('w', [8, 8, width]), shape] },
  );
  const reference = await modelFor(t, quantizer, bytes);
  for (const [config, onnx] of [['int8'], ['int8_dynamic'], ['int4_wo_32'], ['int4_wo_32', { qdq: true }]]) {
    const out = await written(t, quantizer, bytes, config, { onnx });
    assert.equal(out.report.totals.coverage.quantizedParameters, width * width);
    const again = await modelFor(t, quantizer, out.bytes);
    assert.equal(named(again.tensors, 'w'), undefined);
    const compared = await quantizer.compare(reference, again);
    const [row] = compared.tensors.filter(({ name }) => name === 'w');
    assert.ok(Math.abs(row.error.sqnrDb - named(out.report.tensors, 'w').error.sqnrDb) < 1e-6, config);
  }
});

test('every product that reads a weight is a Linear layer', async (t) => {
  const quantizer = await quantizerFor(t);
  const products = [
    ['MatMul', {}],
    ['Gemm', { transB: 1 }],
    ['Einsum', { equation: 'ni,io->no' }],
    ['Einsum', { equation: '...i,oi->...o' }],
    ['FusedMatMul', { domain: 'com.microsoft' }],
    ['Attention', { domain: 'com.microsoft' }],
  ];
  for (const [type, options] of products) {
    const { report } = await written(t, quantizer, oneProduct([node(type, ['x', 'w'], ['y'], options)]), 'int8');
    const { layerType, action } = named(report.tensors, 'w');
    assert.deepEqual([layerType, action], ['Linear', 'quantize'], `${type} ${options.equation ?? ''}`);
  }
});

test('a batch of matrices in MatMul is quantized per channel and per tensor', async (t) => {
  const quantizer = await quantizerFor(t);
  const bytes = oneProduct([node('MatMul', ['x', 'w'], ['y'])], { tensors: [weight('w', [4, width, 16])] });
  const reference = await modelFor(t, quantizer, bytes);
  for (const [config, scale, least] of [
    ['int8', [1, 1, 16], 30],
    ['int8_per_tensor', [], 30],
    ['int8_dynamic', [16], 30],
    ['int4_wo_32', [4, width / 32, 16], 15],
  ]) {
    const out = await written(t, quantizer, bytes, config);
    const again = await modelFor(t, quantizer, out.bytes);
    assert.deepEqual(named(again.tensors, 'w_scale').shape, scale);
    assert.ok((await quantizer.compare(reference, again)).tensors[0].error.sqnrDb > least);
  }
});

test('batches of matrices: exchanged by Transpose, read by Einsum, behind Unsqueeze', async (t) => {
  const quantizer = await quantizerFor(t);
  const axis = tensor('axis', 'I64', [1], BigInt64Array.from([0n]));
  const batch = [4, 16, width]; // [out, in]
  const cases = [
    [batch, [node('Transpose', ['w'], ['t'], { perm: [0, 2, 1] }), node('MatMul', ['x', 't'], ['y'])]],
    [batch, [node('Einsum', ['x', 'w'], ['y'], { equation: 'bij,bkj->bik' })]],
    [
      [16, width],
      [node('Unsqueeze', ['w', 'axis'], ['t']), node('Einsum', ['x', 't'], ['y'], { equation: 'bij,bkj->bik' })],
    ],
  ];
  for (const [shape, nodes] of cases) {
    const bytes = oneProduct(nodes, { tensors: [weight('w', shape), axis] });
    const reference = await modelFor(t, quantizer, bytes);
    for (const [config, scale] of [
      ['int8', [1, 16, 1]],
      ['int4_wo_32', [shape.length === 3 ? 4 : 1, 16, width / 32]],
    ]) {
      const out = await written(t, quantizer, bytes, config);
      const again = await modelFor(t, quantizer, out.bytes);
      assert.deepEqual(named(again.tensors, 'w_scale').shape, scale);
      assert.equal(named(again.tensors, 'w'), undefined);
      const row = named((await quantizer.compare(reference, again)).tensors, 'w');
      assert.equal(row.error.sqnrDb, named(out.report.tensors, 'w').error.sqnrDb);
    }
  }
});

test('a plan that quantizes nothing is an error with the reason; the plan shows it', async (t) => {
  const quantizer = await quantizerFor(t);
  const double = tensor('w', 'F64', [width, width], new Float64Array(width * width).fill(0.5));
  const cases = [
    [oneProduct([node('Einsum', ['x', 'w'], ['y'])]), /Einsum reads it in an equation that is not a product/],
    [
      oneProduct([node('Transpose', ['w'], ['t']), node('MatMul', ['x', 't'], ['y'])], {
        tensors: [weight('w', [4, width, width])],
      }),
      /Transpose reorders its elements, .*fold constants first/,
    ],
    [oneProduct([node('Relu', ['x'], ['y'])], { tensors: [weight()] }), /no node reads it/],
    [oneProduct([node('MatMul', ['x', 'w'], ['y'])], { inputs: [['w', 'F32', [width, width]]] }), /--constant-inputs/],
    [oneProduct([node('MatMul', ['x', 'w'], ['y'])], { tensors: [double] }), /MatMul reads it as float64/],
  ];
  for (const [bytes, why] of cases) {
    const model = await modelFor(t, quantizer, bytes);
    const [error] = (await quantizer.plan(model, 'int8')).diagnostics;
    assert.deepEqual([error?.severity, error?.code], ['error', 'nothing-quantized']);
    assert.match(error.message, /^no part of this model would be quantized; /);
    assert.match(error.message, why);
    await assert.rejects(written(t, quantizer, bytes, 'int8'), { code: 'nothing-quantized' });
  }
});

test('weights that are inputs of the graph become constants on request', async (t) => {
  const quantizer = await quantizerFor(t);
  const bytes = oneProduct([node('MatMul', ['x', 'w'], ['y'])], { inputs: [['w', 'F32', [width, width]]] });
  const { bytes: file, report } = await written(t, quantizer, bytes, 'int8', { onnx: { constantInputs: true } });
  assert.equal(report.totals.coverage.quantizedParameters, width * width);
  assert.deepEqual(namesOf(await modelFor(t, quantizer, file)), ['w_quantized', 'w_scale']);
  const folder = scratchFolder(t);
  writeFileSync(join(folder, 'm.onnx'), bytes);
  const { code, document } = await cliJson(['plan', join(folder, 'm.onnx'), '-p', 'int8', '--constant-inputs']);
  assert.equal(code, 0);
  assert.equal(document.totals.coverage.quantizedParameters, width * width);
});

test('a tied embedding: one table for both, or the reported sizes include the second', async (t) => {
  const quantizer = await quantizerFor(t);
  const tied = (columns) =>
    model(
      graph({
        nodes: [
          node('Gather', ['emb', 'ids'], ['e'], { name: '/embed/Gather' }),
          node('Transpose', ['emb'], ['t'], { perm: [1, 0] }),
          node('MatMul', ['e', 't'], ['y'], { name: '/lm_head/MatMul' }),
        ],
        tensors: [weight('emb', [512, columns])],
        inputs: [['ids', 'I64', ['n']]],
        outputs: [['y', 'F32', ['n', 512]]],
      }),
    );
  const both = { ...spec(int4), layer_type_quant_config: { Embedding: { weight: int4 } } };
  const run = async (bytes, config) => {
    const out = await written(t, quantizer, bytes, config);
    const codes = out.report.diagnostics.map(({ code }) => code);
    return {
      codes,
      told: out.report.totals.bytesAfter,
      size: out.bytes.length,
      names: namesOf(await modelFor(t, quantizer, out.bytes)),
    };
  };
  const shared = await run(tied(width), both);
  assert.deepEqual(
    shared.codes.filter((code) => code !== 'opset-raised'),
    [],
  );
  assert.ok(!shared.names.includes('emb') && shared.names.includes('emb_Q4'));
  assert.ok(shared.size < shared.told + 4500, `${shared.size} bytes, told were ${shared.told}`);
  const onlyHead = await run(tied(width), spec(int4));
  const onlyTable = await run(tied(width), { ...both, global_quant_config: {}, exclude: ['lm_head'] });
  // Rows that MatMulNBits pads are shared, too.
  const padded = await run(tied(48), both);
  assert.ok(!padded.names.includes('emb') && padded.names.includes('emb_Q4'));
  for (const kept of [onlyHead, onlyTable]) {
    assert.ok(kept.codes.includes('weight-kept-twice'), String(kept.codes));
    assert.ok(kept.names.includes('emb'));
    assert.ok(Math.abs(kept.size - kept.told) < 2000, `${kept.size} bytes, told were ${kept.told}`);
  }
});

test('an odd number of columns in four bits: the tensor is packed, not its rows; in any tiles', async (t) => {
  const quantizer = await quantizerFor(t);
  const shape = [width, 51];
  const bytes = oneProduct([node('MatMul', ['x', 'w'], ['y'])], { tensors: [weight('w', shape)] });
  const reference = await modelFor(t, quantizer, bytes);
  const { bytes: file } = await written(t, quantizer, bytes, 'int4_wo_32', { onnx: { qdq: true } });
  const again = await modelFor(t, quantizer, file);
  const [row] = (await quantizer.compare(reference, again)).tensors;
  assert.ok(row.error.sqnrDb > 18, `${row.error.sqnrDb} dB`);
});

test('an operator that cannot be upgraded here is refused with what upgrades it', async (t) => {
  const quantizer = await quantizerFor(t);
  const scales = tensor('scales', 'F32', [2], Float32Array.from([1, 2]));
  const nodes = [
    node('MatMul', ['x', 'w'], ['h']),
    node('Mul', ['scales', 'scales'], ['factors']),
    node('Resize', ['h', 'factors'], ['y'], {}, '/resize'),
  ];
  const model = await modelFor(t, quantizer, oneProduct(nodes, { tensors: [weight(), scales], opset: 10 }));
  await assert.rejects(
    () => quantizer.plan(model, 'int4_wo_32', { onnx: { qdq: true } }),
    ({ code, message }) =>
      code === 'format-unsupported' &&
      /this needs opset 21, and opset 11 changes what Resize means.*onnx\.version_converter\.convert_version\(model, 21\).*leave --qdq/.test(
        message,
      ),
  );
});

test('Split into equal parts and Resize of version 10 are upgraded', async (t) => {
  const quantizer = await quantizerFor(t);
  const split = oneProduct(
    [
      node('MatMul', ['x', 'w'], ['h']),
      node('Split', ['h'], ['a', 'b'], { axis: 1 }),
      node('Concat', ['a', 'b'], ['y'], { axis: 1 }),
    ],
    { opset: 14 },
  );
  const { report } = await written(t, quantizer, split, 'int4_wo_32', { onnx: { qdq: true } });
  assert.ok(report.diagnostics.some(({ code }) => code === 'opset-raised'));
  for (const factors of [
    [1, 2],
    [0.5, 1],
    [0.5, 2],
  ]) {
    const scales = tensor('scales', 'F32', [2], Float32Array.from(factors));
    const resize = oneProduct([node('MatMul', ['x', 'w'], ['h']), node('Resize', ['h', 'scales'], ['y'])], {
      tensors: [weight(), scales],
      opset: 10,
    });
    const { report, bytes } = await written(t, quantizer, resize, 'int8', { onnx: { qdq: true } });
    assert.ok(report.totals.coverage.quantizedParameters > 0);
    // One node rounds one way.
    assert.equal(
      Buffer.from(bytes).toString('latin1').split('nearest_mode').length - 1,
      new Set(factors.filter((f) => f !== 1).map((f) => f < 1)).size,
    );
  }
});

test('activations of an unknown layer: each layer is named once', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, oneProduct([node('MatMul', ['x', 'w'], ['y'])]));
  const input = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false };
  const config = { global_quant_config: { weight: { dtype: 'int8' }, input_tensors: input, output_tensors: input } };
  const batch = { layer: 'none', role: 'input', data: new Float32Array(width), shape: [1, width] };
  await assert.rejects(
    quantizer.quantizeModel(source, config, { target: memoryStream().stream, calibration: [batch] }),
    { code: 'argument-invalid', message: /it has w$/ },
  );
});

test('GGUF: the run reports types whose blocks do not divide the rows', async (t) => {
  const folder = scratchFolder(t);
  const tinyLlama = join(import.meta.dirname, '../../files/tiny-llama');
  const { code, document } = await cliJson(['quantize', tinyLlama, '-o', join(folder, 'q.gguf'), '-p', 'q4_k_m']);
  assert.equal(code, 0);
  const [note] = document.diagnostics.filter((diagnostic) => diagnostic.code === 'type-fallback');
  assert.equal(note.severity, 'note');
  assert.match(
    note.message,
    /rows of 576 are not a multiple of .* blocks of 256, so .*; 4 of 39 tensors .* adds \d+ bytes/,
  );
  const { stdout } = await cli(['quantize', tinyLlama, '-o', join(folder, 'r.gguf'), '-p', 'q4_k_m']);
  assert.match(stdout, /rows of 576 are not a multiple/);
});
