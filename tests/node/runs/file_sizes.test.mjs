// Announced and reported sizes are those of the files, for every preset in every format: graph, headers, padding and
// what is copied counted.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formats } from '../../../dist/internal.js';
import { outputFormats, QuantizationError } from '../../../dist/node.js';
import { root } from '../../setup/command.mjs';
import { convolutions, graph, model as modelBytes, node, noise, tensor, twoLayers, wordModel } from '../onnx/model.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { npyFile, npzFile } from '../sources/npy_file.mjs';

/** A target that counts the bytes of each file. */
function countingTarget() {
  const sizes = new Map();
  const write = async (name) => {
    sizes.set(name, 0);
    return new WritableStream({
      write: (chunk) => void sizes.set(name, sizes.get(name) + chunk.byteLength),
    });
  };
  return { target: { write }, sizes };
}

/** Two products of one weight, and a shape that reads it, so that a quantized copy comes on top of it. */
function sharedWeight() {
  return modelBytes(
    graph({
      nodes: [
        node('MatMul', ['x', 'w'], ['h'], { name: '/up/MatMul' }),
        node('Add', ['w', 'w'], ['twice']),
        node('MatMul', ['h', 'twice'], ['y'], { name: '/down/MatMul' }),
      ],
      tensors: [tensor('w', 'F32', [64, 64], noise(4096, 1))],
      inputs: [['x', 'F32', ['n', 64]]],
      outputs: [['y', 'F32', ['n', 64]]],
    }),
  );
}

/** Small models of every format but GGUF, as paths. */
function sources(t) {
  const folder = scratchFolder(t);
  const put = (name, bytes) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const array = npyFile('<f4', [64, 128], noise(8192, 3));
  return {
    checkpoint: join(files, 'forward/llama'),
    'quantized checkpoint': join(files, 'quantized/mlx'),
    shards: join(tinyLlama, 'bf16'),
    'array of NumPy': put('w.npy', array),
    'compressed arrays of NumPy': put('w.npz', npzFile([{ name: 'w.npy', bytes: array, deflate: true }])),
    'two layers': put('two.onnx', twoLayers().bytes),
    convolutions: put('conv.onnx', convolutions()),
    'words of a language model': put('words.onnx', wordModel(40)),
    'weight of several nodes': put('shared.onnx', sharedWeight()),
  };
}

/** Bytes of the weight files on the disk. */
function bytesOnDisk(path) {
  if (!statSync(path).isDirectory()) return statSync(path).size;
  const weights = readdirSync(path).filter((name) => name.endsWith('.safetensors'));
  const named = weights.filter((name) => name.startsWith('model'));
  return named.reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}

/** Runs a preset; null if it does not fit the model and format. */
async function sizesOf(quantizer, model, preset, format) {
  const { target, sizes } = countingTarget();
  try {
    const plan = await quantizer.plan(model, preset, { format });
    const report = await quantizer.quantizeModel(model, preset, { target, format });
    return { plan, report, sizes };
  } catch (error) {
    if (error instanceof QuantizationError) return null;
    throw error;
  }
}

function check({ plan, report, sizes }, before, where) {
  assert.equal(plan.totals.bytesBefore, before, `${where}: bytes of the model`);
  const written = plan.files.reduce((sum, { name }) => sum + sizes.get(name), 0);
  assert.equal(plan.totals.bytesAfter, written, `${where}: bytes of the files`);
  assert.deepEqual(report.totals, plan.totals, where);
  for (const { name, bytes } of report.files) assert.equal(sizes.get(name), bytes, `${where}: ${name}`);
  const larger = plan.diagnostics.some(({ code }) => code === 'output-larger');
  assert.equal(larger, written > before * 1.001, `${where}: ${before} become ${written}`);
}

test('every preset in every format: sizes before the run equal the sizes of the files', async (t) => {
  const quantizer = await quantizerFor(t);
  const presets = quantizer.presets().map(({ name }) => name);
  const used = { presets: new Set(), formats: new Set() };
  for (const [label, path] of Object.entries(sources(t))) {
    const before = bytesOnDisk(path);
    const model = await modelFor(t, quantizer, path);
    assert.equal(model.bytes, before, label);
    const few = label === 'shards' ? ['int8', 'int4_wo_128'] : presets;
    for (const format of outputFormats.filter((name) => !formats.outputs[name].takesRecipes))
      for (const preset of few) {
        const found = await sizesOf(quantizer, model, preset, format);
        if (!found) continue;
        check(found, before, `${label}, ${preset} as ${format}`);
        used.presets.add(preset);
        used.formats.add(format);
      }
  }
  const recipes = await recipesChecked(t, quantizer);
  const all = [...used.presets, ...recipes];
  assert.deepEqual(
    presets.filter((name) => !all.includes(name)),
    [],
    'presets that nothing was made with',
  );
  assert.deepEqual(
    outputFormats.filter((name) => !used.formats.has(name)),
    ['gguf'],
  );
});

/** GGUF of a folder and of a GGUF file, by every recipe. Returns their names. */
async function recipesChecked(t, quantizer) {
  const folder = await modelFor(t, quantizer, tinyLlama);
  const path = join(scratchFolder(t), 'half.gguf');
  await quantizer.quantizeModel(folder, 'q8_0', { target: path });
  const file = await modelFor(t, quantizer, path);
  const recipes = quantizer.presets().filter(({ config }) => config.dialect === 'gguf');
  for (const { name } of recipes) {
    for (const [model, before] of [
      [folder, bytesOnDisk(tinyLlama)],
      [file, bytesOnDisk(path)],
    ]) {
      const found = await sizesOf(quantizer, model, name, 'gguf');
      if (found) check(found, before, `${model.format}, ${name}`);
      else assert.notEqual(model, folder, `${name} of a folder`);
    }
  }
  return recipes.map(({ name }) => name);
}

// Those of `npm run test:peers`, of hundreds of megabytes: only planned, which the test above shows to be exact.
const peers = join(root, '.peers-python/models');
const graphs = existsSync(peers)
  ? readdirSync(peers).filter((name) => existsSync(join(peers, name, 'model.onnx')))
  : [];
test('no preset makes a real ONNX model larger without saying so', { skip: graphs.length === 0 }, async (t) => {
  const quantizer = await quantizerFor(t);
  for (const name of graphs) {
    const model = await modelFor(t, quantizer, join(peers, name, 'model.onnx'));
    const [found, larger] = [[], []];
    for (const preset of quantizer.presets().map((each) => each.name)) {
      for (const qdq of [false, true]) {
        let plan;
        try {
          plan = await quantizer.plan(model, preset, { onnx: { qdq } });
        } catch (error) {
          assert.ok(error instanceof QuantizationError, `${name} ${preset}: ${error}`);
          continue;
        }
        const { bytesBefore, bytesAfter } = plan.totals;
        const isSaid = plan.diagnostics.some(({ code }) => code === 'output-larger');
        assert.equal(
          isSaid,
          bytesAfter > bytesBefore * 1.001,
          `${name}, ${preset}: ${bytesBefore} become ${bytesAfter}`,
        );
        (isSaid ? larger : found).push(preset);
      }
    }
    assert.ok(found.length > 4, name);
    t.diagnostic(
      `${name}: ${found.length} plans, ${larger.length} of larger files, which say so: ${[...new Set(larger)]}`,
    );
  }
});

test('a larger result is announced before the run, with a smaller preset', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = await modelFor(t, quantizer, tinyLlama);
  const path = join(scratchFolder(t), 'small.gguf');
  await quantizer.quantizeModel(folder, 'q4_k_m', { target: path });
  const file = await modelFor(t, quantizer, path);
  const plan = await quantizer.plan(file, 'q8_0');
  const [first] = plan.diagnostics;
  assert.equal(first.code, 'output-larger');
  assert.match(first.message, /^the result is [\d.]+ % larger than the model: [\d.]+ MB become [\d.]+ MB$/);
  const preset = /^use (\w+), which gives ([\d.]+ MB)$/.exec(first.hint)?.[1];
  assert.ok(preset, first.hint);
  assert.ok((await quantizer.plan(file, preset)).totals.bytesAfter < statSync(path).size, preset);
  assert.ok(readFileSync(path).length === file.bytes);
});
