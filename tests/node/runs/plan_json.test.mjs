// Plans as JSON: what tensors share is written once, and read back it is one object.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planJson, planOf } from '../../../dist/node.js';
import { cliJson } from '../cli/process.mjs';
import { twoLayers } from '../onnx/model.mjs';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';
import { largeModel } from './large_model.mjs';
import { int4 } from './run_sources.mjs';

/** Users pay at most so many bytes for a tensor, tables and all. */
const mostBytes = 300;

test('one planned int4 tensor is at most 300 bytes of JSON', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, largeModel(t, { layers: 32 }));
  const plan = await quantizer.plan(model, 'int4_wo_128');
  assert.equal(plan.tensors.length, 32 * 9 + 3);
  const document = planJson(plan);
  const bytes = JSON.stringify(document).length / plan.tensors.length;
  assert.ok(bytes <= mostBytes, `${bytes} bytes a tensor`);
  const rows = document.tensors.filter(({ action }) => action === 'quantize');
  assert.equal(rows.length, 32 * 7);
  for (const row of rows) assert.ok(JSON.stringify(row).length <= mostBytes, row.name);
  assert.equal(document.specs.length, 1, 'a spec is written once');
  assert.equal(new Set(document.reasons.map((reason) => JSON.stringify(reason))).size, document.reasons.length);
});

test('the command line prints the same compact JSON', async (t) => {
  const { stdout, document } = await cliJson(['plan', largeModel(t, { layers: 32 }), '-p', 'int4_wo_128']);
  assert.ok(stdout.length / document.tensors.length <= mostBytes, `${stdout.length} bytes`);
});

test('tensors share specs and reasons as objects', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { tensors } = await quantizer.plan(model, int4);
  const quantized = tensors.filter(({ spec }) => spec !== null);
  assert.equal(quantized.length, 28);
  for (const { spec, reason } of quantized) {
    assert.equal(spec, quantized[0].spec);
    assert.equal(reason, quantized[0].reason);
  }
  assert.equal(quantized[0].spec.dtype, 'int4');
});

test('the JSON reads back as the plan', async (t) => {
  const quantizer = await quantizerFor(t);
  const llama = await modelFor(t, quantizer, tinyLlama);
  const onnx = await modelFor(t, quantizer, twoLayers().bytes);
  const cases = [
    [llama, int4, {}],
    [llama, 'mxfp4', { format: 'quark' }],
    [llama, 'int8', { format: 'fake-quantized' }],
    [llama, 'fp8', { format: 'quark', calibrated: true }],
    [llama, 'q4_k_m', {}],
    [onnx, 'int8', {}],
  ];
  for (const [model, config, options] of cases) {
    const plan = await quantizer.plan(model, config, options);
    const text = JSON.stringify(planJson(plan));
    assert.deepEqual(planOf(JSON.parse(text)), plan, text);
    assert.ok(plan.tensors.every(({ outputs }) => outputs.every(({ name, file }) => name && file)));
  }
});

test('lists of specs are numbered, too', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const stages = [
    { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
    { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0, symmetric: true },
  ];
  const config = { global_quant_config: { weight: stages } };
  const plan = await quantizer.plan(model, config, { format: 'quark' });
  const { specs, tensors } = planJson(plan);
  assert.deepEqual(specs.map(({ dtype }) => dtype).sort(), ['fp8_e4m3', 'int4']);
  const row = tensors.find(({ stages }) => stages);
  assert.deepEqual(
    row.stages.map((number) => specs[number].dtype),
    ['fp8_e4m3', 'int4'],
  );
  assert.equal(specs[row.spec].dtype, 'int4');
});

test('numbers outside the lists are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const document = planJson(await quantizer.plan(await modelFor(t, quantizer, tinyLlama), int4));
  const [first, ...rest] = document.tensors;
  for (const wrong of [{ spec: 7 }, { reason: -1 }, { outputs: [99_999] }, { stages: [1.5] }])
    assert.throws(() => planOf({ ...document, tensors: [{ ...first, ...wrong }, ...rest] }), {
      code: 'argument-invalid',
    });
});
