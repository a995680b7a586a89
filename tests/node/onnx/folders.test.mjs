// Folders for transformers.js: several graphs, several dtypes in turn, and a config.json that is true of the files.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { cli } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { convolutions, graph, model, node, noise, tensor, twoLayers } from './model.mjs';

const { bytes } = twoLayers({ opset: 13 });
const block = (folder) => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))['transformers.js_config'] ?? {};
const onnxIn = (folder) => readdirSync(join(folder, 'onnx')).sort();

/** A folder with these files; objects are JSON. */
function repository(t, files) {
  const root = join(scratchFolder(t), 'repository');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content instanceof Uint8Array ? content : JSON.stringify(content));
  }
  return root;
}

/** The number of data files that transformers.js looks for. Source: transformers.js 4.3, utils/model-loader.js. */
function dataFilesOf({ use_external_data_format: declared }, name) {
  const base = name.replace(/(_(fp16|quantized|int8|uint8|q4|q4f16|bnb4))?\.onnx$/, '');
  if (typeof declared !== 'object' || declared === null) return Number(declared ?? 0);
  return Number(declared[name] ?? declared[base] ?? 0);
}

/** Every file that transformers.js would ask for is there, and every data file is asked for. */
function isTrue(folder) {
  const names = onnxIn(folder);
  for (const name of names.filter((each) => each.endsWith('.onnx'))) {
    const count = dataFilesOf(block(folder), name);
    assert.equal(count, Number(names.includes(`${name}_data`)), `${name}: ${JSON.stringify(block(folder))}`);
  }
}

const parts = ['encoder_model', 'decoder_model_merged', 'vision_encoder'];

test('all graphs of a folder are quantized by one run, in any layout, with external data of each', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  for (const inner of ['onnx/', '']) {
    const config = { model_type: 'x', 'transformers.js_config': { use_external_data_format: true } };
    const graphs = Object.fromEntries(parts.map((part) => [`${inner}${part}.onnx`, bytes]));
    const source = repository(t, { 'config.json': config, 'tokenizer.json': {}, ...graphs });
    const opened = await modelFor(t, quantizer, source);
    assert.equal(opened.parts.length, 2);
    assert.ok(opened.diagnostics.some(({ code }) => code === 'onnx-parts'));
    for (const externalData of [false, true]) {
      const target = join(source, `../out-${externalData}`);
      const seen = [];
      const onProgress = ({ bytesDone, bytesTotal }) => seen.push([bytesDone, bytesTotal]);
      const report = await quantizer.quantizeModel(opened, 'int4_wo_32', {
        target,
        onnx: { externalData },
        onProgress,
      });
      const written = parts.map((part) => `${part}_q4.onnx`);
      assert.deepEqual(
        onnxIn(target),
        written.flatMap((name) => (externalData ? [name, `${name}_data`] : [name])).sort(),
      );
      isTrue(target);
      assert.equal(
        report.totals.quantized,
        3 * report.tensors.filter(({ action, name }) => action === 'quantize' && !name.includes('/')).length,
      );
      assert.equal(report.totals.bytesBefore, 3 * bytes.length);
      assert.deepEqual(seen.at(-1)[0], seen.at(-1)[1]);
      assert.ok(seen.every(([done], i) => i === 0 || done >= seen[i - 1][0]));
      for (const name of written) await modelFor(t, quantizer, join(target, 'onnx', name));
    }
  }
});

test('a part without anything to quantize is carried along and named; a single file names those left out', async (t) => {
  const quantizer = await quantizerFor(t);
  const nothing = model(
    graph({ nodes: [node('Relu', ['x'], ['y'])], inputs: [['x', 'F32', [2]]], outputs: [['y', 'F32', [2]]] }),
  );
  const source = repository(t, { 'config.json': {}, 'onnx/model.onnx': bytes, 'onnx/head.onnx': nothing });
  const opened = await modelFor(t, quantizer, source);
  const target = join(source, '../out');
  const { diagnostics } = await quantizer.quantizeModel(opened, 'int8', { target });
  assert.deepEqual(onnxIn(target), ['head.onnx', 'model_int8.onnx']);
  assert.equal(diagnostics.find(({ code }) => code === 'onnx-parts').where, 'head.onnx');
  const single = await quantizer.quantizeModel(opened, 'int8', { target: join(source, '../one.onnx') });
  assert.equal(single.diagnostics.find(({ code }) => code === 'onnx-parts').where, 'head.onnx');
  const idle = await modelFor(t, quantizer, repository(t, { 'config.json': {}, 'a.onnx': nothing, 'b.onnx': nothing }));
  await assert.rejects(quantizer.quantizeModel(idle, 'int8', { target: join(source, '../idle') }), {
    code: 'nothing-quantized',
  });
});

test('another dtype adds to a folder of the same model, and replaces nothing', async (t) => {
  const quantizer = await quantizerFor(t);
  const config = { model_type: 'x', 'transformers.js_config': { dtype: 'fp16', kv_cache_dtype: 'float16' } };
  const source = repository(t, { 'config.json': config, 'tokenizer.json': {}, 'onnx/model.onnx': bytes });
  const opened = await modelFor(t, quantizer, source);
  const target = join(source, '../out');
  const run = (preset, options = {}) => quantizer.quantizeModel(opened, preset, { target, ...options });
  await run('int4_wo_32', { onnx: { externalData: true } });
  const first = readFileSync(join(target, 'onnx/model_q4.onnx'));
  await run('int8');
  await run('int8_dynamic', { onnx: { externalData: true } });
  isTrue(target);
  assert.deepEqual(readFileSync(join(target, 'onnx/model_q4.onnx')), first);
  assert.deepEqual(block(target), {
    dtype: { model: 'q4' },
    use_external_data_format: { 'model_q4.onnx': 1, 'model_quantized.onnx': 1 },
  });
  await assert.rejects(run('int8'), { code: 'target-exists', where: /model_int8\.onnx$/ });
  await run('int8', { overwrite: true });
  isTrue(target);
  const other = await modelFor(
    t,
    quantizer,
    repository(t, { 'config.json': { model_type: 'y' }, 'onnx/model.onnx': bytes }),
  );
  await assert.rejects(quantizer.quantizeModel(other, 'uint4_wo_32', { target: join(source, '../out') }), {
    code: 'target-exists',
    where: 'config.json',
  });
  writeFileSync(join(source, 'tokenizer.json'), '{"other": 1}');
  const text = await cli(['quantize', source, '-o', target, '-p', 'int2_wo_32']);
  assert.notEqual(text.code, 0);
  writeFileSync(join(source, 'tokenizer.json'), '{}');
});

test('the command line adds a dtype without --force', async (t) => {
  const source = repository(t, { 'config.json': {}, 'onnx/model.onnx': bytes, 'onnx/encoder.onnx': bytes });
  const target = join(source, '../out');
  for (const preset of ['int4_wo_32', 'int8_dynamic']) {
    const { code, stderr } = await cli(['quantize', source, '-o', target, '-p', preset]);
    assert.equal(code, 0, stderr);
  }
  assert.deepEqual(onnxIn(target), [
    'encoder_q4.onnx',
    'encoder_quantized.onnx',
    'model_q4.onnx',
    'model_quantized.onnx',
  ]);
});

test('a file has the name of the dtype that was asked for, though operators of some layers take another', async (t) => {
  const quantizer = await quantizerFor(t);
  const mixed = model(
    graph({
      nodes: [
        node('Conv', ['i', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
        node('MatMul', ['x', 'a.weight'], ['y'], { name: '/a/MatMul' }),
      ],
      tensors: [
        tensor('conv.weight', 'F32', [64, 3, 16, 16], noise(64 * 3 * 256, 5)),
        tensor('a.weight', 'F32', [64, 64], noise(64 * 64, 1)),
      ],
      inputs: [
        ['x', 'F32', ['n', 64]],
        ['i', 'F32', [1, 3, 32, 32]],
      ],
      outputs: [
        ['y', 'F32', ['n', 64]],
        ['c', 'F32', [1, 64, 17, 17]],
      ],
    }),
  );
  const group = (dtype) => ({ weight: { dtype, qscheme: 'per_group', group_size: 32 } });
  for (const [source, config, name] of [
    [mixed, 'int4_wo_32', 'model_q4.onnx'],
    [mixed, 'uint4_wo_32', 'model_q4.onnx'],
    [mixed, 'int8_dynamic', 'model_quantized.onnx'],
    [mixed, 'int8', 'model_int8.onnx'],
    [convolutions(), 'int4_wo_32', 'model_int8.onnx'],
    [
      bytes,
      { global_quant_config: group('int4'), layer_type_quant_config: { Embedding: group('int8') } },
      'model_q4.onnx',
    ],
  ]) {
    const opened = await modelFor(t, quantizer, repository(t, { 'onnx/model.onnx': source }));
    const { files } = await quantizer.plan(opened, config);
    assert.deepEqual(
      files.map((file) => file.name),
      [`onnx/${name}`],
    );
  }
});

test('graphs of other dtypes are not parts; one with only quantized files is asked for', async (t) => {
  const quantizer = await quantizerFor(t);
  const all = ['model', 'model_fp16', 'model_q4', 'model_quantized', 'model_bnb4', 'head_fp16', 'head_q4f16'];
  const graphs = Object.fromEntries(all.map((name) => [`onnx/${name}.onnx`, bytes]));
  const opened = await modelFor(t, quantizer, repository(t, graphs));
  assert.deepEqual(
    [opened, ...opened.parts].map(({ files: [file] }) => file.name),
    ['model.onnx', 'head_fp16.onnx'],
  );
  const unclear = repository(t, { 'onnx/model_q4.onnx': bytes, 'onnx/model_int8.onnx': bytes });
  await assert.rejects(quantizer.open(unclear), {
    code: 'source-invalid',
    message: /model_int8\.onnx, model_q4\.onnx; name one/,
  });
  const unrelated = repository(t, { 'a.onnx': bytes, 'b.onnx': bytes });
  await assert.rejects(quantizer.open(unrelated), {
    code: 'source-invalid',
    message: /^(?!.*safetensors).*a\.onnx, b\.onnx/,
  });
});

test('layers are excluded by class and by operator', async (t) => {
  const quantizer = await quantizerFor(t);
  const opened = await modelFor(t, quantizer, convolutions());
  const quantized = async (config) =>
    (await quantizer.plan(opened, config)).tensors
      .filter(({ action }) => action === 'quantize')
      .map(({ layerType }) => layerType);
  const types = await quantized('int8');
  const exclude = (...names) => quantizer.presetConfig('int8', { exclude: names });
  for (const type of new Set(types))
    assert.deepEqual(
      await quantized(exclude(type)),
      types.filter((each) => each !== type),
      type,
    );
  assert.deepEqual(
    await quantized(exclude('Conv')),
    types.filter((type) => !/^Conv\d/.test(type)),
  );
  const two = await modelFor(t, quantizer, bytes);
  const reasonOf = async (config) =>
    (await quantizer.plan(two, config)).tensors.map(({ name, action }) => [name, action]);
  const before = await reasonOf('int8');
  const without = await reasonOf(exclude('MatMul'));
  assert.notDeepEqual(without, before);
  const [unused] = (await quantizer.plan(two, exclude('Conv9d'))).diagnostics.filter(
    ({ code }) => code === 'pattern-unused',
  );
  assert.match(unused.message, /Conv9d/);
  const source = repository(t, { 'm.onnx': convolutions() });
  const text = await cli(['plan', join(source, 'm.onnx'), '-p', 'int8', '--layer-type', `${types[0]}=none`]);
  assert.match(text.stdout, new RegExp(`excluded by "${types[0]}", which is its class`));
});
