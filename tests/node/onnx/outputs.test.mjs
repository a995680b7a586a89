// ONNX outputs as other commands see them: compare, the command line, folders as transformers.js has them.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { planOf } from '../../../dist/node.js';
import { cli, cliJson } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { convolutions, twoLayers } from './model.mjs';
import { named, namesOf } from './written.mjs';

test('compare finds the errors that quantizing reported, in every form', async (t) => {
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
    [two, embeddings({ dtype: 'uint8', qscheme: 'per_channel', ch_axis: 0, symmetric: false }), {}],
    [two, embeddings({ dtype: 'uint2', qscheme: 'per_tensor', symmetric: false }), {}],
    [two, 'int8', { accuracyLevel: 4 }],
    [two, 'int4_wo_per_channel', {}],
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
    diagnostics.map(({ code, where }) => [code, where]),
    [
      ['nothing-compared', ''],
      ...['up', 'down.weight', 'embed_tokens.weight'].map((name) => ['tensor-not-compared', name]),
    ],
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
  assert.match(named(planOf(planned).tensors, 'up').reason.text, /DequantizeLinear/);
  const { document: inspected } = await cliJson(['inspect', out]);
  assert.ok(namesOf(inspected).includes('up_quantized'));
  const wrong = await cli(['quantize', input, '-o', join(folder, 'x.onnx'), '-p', 'int8', '--accuracy-level', '9']);
  assert.equal(wrong.code, 2);
});

test("a repository with weights only in onnx/: as a folder, as a list of files, and the output's places", async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = join(folder, 'source');
  mkdirSync(join(source, 'onnx'), { recursive: true });
  const { bytes } = twoLayers({ opset: 13 });
  const files = { 'config.json': '{"model_type": "llama"}', 'tokenizer.json': '{}', 'onnx/model.onnx': bytes };
  files['onnx/model_fp16.onnx'] = bytes;
  for (const [name, content] of Object.entries(files)) writeFileSync(join(source, name), content);
  const list = Object.entries(files).map(([name, content]) => new File([content], name));
  for (const given of [source, list]) {
    const model = await modelFor(t, quantizer, given);
    assert.deepEqual(
      model.files.map(({ name }) => name.split('/').at(-1)),
      ['model.onnx'],
    );
    assert.equal(model.config.model_type, 'llama');
    for (const [config, onnx] of [['int4_wo_32'], ['int8', { externalData: true }]]) {
      const plan = await quantizer.plan(model, config, onnx && { onnx });
      const target = join(folder, 'target');
      const report = await quantizer.quantizeModel(model, config, { target, overwrite: true, ...(onnx && { onnx }) });
      assert.deepEqual(plan.files, report.files.slice(0, plan.files.length));
      assert.ok(plan.files.every(({ name }) => name.startsWith('onnx/')));
    }
  }
  const file = await modelFor(t, quantizer, join(source, 'onnx', 'model.onnx'));
  assert.ok((await quantizer.plan(file, 'int8')).files.every(({ name }) => !name.includes('/')));
  const two = list.filter(({ name }) => name !== 'onnx/model.onnx');
  two.push(new File([bytes], 'onnx/encoder.onnx'));
  const parts = await modelFor(t, quantizer, two);
  assert.deepEqual(
    [parts, ...parts.parts].map(({ files: [file] }) => file.name.split('/').at(-1)),
    ['model_fp16.onnx', 'encoder.onnx'],
  );
});

test('a folder is laid out as transformers.js expects, one file per dtype', async (t) => {
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

test('a folder of onnxruntime-genai keeps the name of its model, which genai_config.json has', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = join(folder, 'source');
  mkdirSync(source);
  writeFileSync(join(source, 'decoder.onnx'), twoLayers({ opset: 21 }).bytes);
  for (const [filename, written] of [
    ['decoder.onnx', ['decoder.onnx_data', 'decoder.onnx']],
    ['other.onnx', ['onnx/decoder_q4.onnx_data', 'onnx/decoder_q4.onnx']],
  ]) {
    writeFileSync(join(source, 'genai_config.json'), JSON.stringify({ model: { decoder: { filename } } }));
    const model = await modelFor(t, quantizer, source);
    const target = join(folder, filename.replace('.onnx', '-folder'));
    const { files } = await quantizer.quantizeModel(model, 'int4_wo_32', { target, onnx: { externalData: true } });
    assert.deepEqual(
      files.map(({ name }) => name),
      [...written, 'genai_config.json'],
    );
    const quantized = await modelFor(t, quantizer, join(target, written[1]));
    assert.equal(quantized.files.length, 2, 'external data are named from where the model is');
  }
});
