// Importance in GGUF files: from calibration, from matrices in both of llama.cpp's formats, by library and command line.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const tokensFile = join(files, 'tiny-llama-reference/calib_tokens.safetensors');
const statistics = join(files, 'tiny-llama-reference/calib_stats.safetensors');

async function written(quantizer, model, config, options) {
  const out = memoryStream();
  const report = await quantizer.quantizeModel(model, config, { target: out.stream, ...options });
  return { bytes: out.bytes(), report };
}

/** Tensor name to its bytes. */
async function tensorsOf(t, quantizer, bytes) {
  const { tensors, metadata } = await modelFor(t, quantizer, bytes);
  return {
    metadata,
    tensors: new Map(tensors.map((tensor) => [tensor.name, bytes.subarray(tensor.begin, tensor.end)])),
  };
}

test('an importance matrix holds mean squares, and gives the same bytes as calibrating in the run', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, tokensFile);
  const matrix = await quantizer.languageModel(model).importance({ calibration: { tokens }, dataset: 'calib' });
  const { tensors, metadata } = await tensorsOf(t, quantizer, matrix);
  assert.equal(metadata['general.type'], 'imatrix');
  assert.equal(metadata['imatrix.chunk_count'], '32');
  assert.equal(metadata['imatrix.chunk_size'], '256');
  assert.equal(tensors.size, 2 * 7 * 4);
  const floats = (name) => new Float32Array(tensors.get(name).slice().buffer);
  assert.deepEqual(floats('blk.2.attn_q.weight.counts'), Float32Array.of(8192));

  // The diagonal of the Hessian in the reference is the mean square.
  const reference = await modelFor(t, quantizer, statistics);
  const { begin, shape } = reference.tensors.find(({ name }) => name.endsWith('layers.2.mlp.down_proj.input_hessian'));
  const view = new DataView(readFileSync(statistics).buffer);
  const sums = floats('blk.2.ffn_down.weight.in_sum2');
  assert.equal(sums.length, shape[0]);
  for (const [i, sum] of sums.entries()) {
    const mean = view.getFloat32(begin + 4 * (i * shape[1] + i), true);
    assert.ok(Math.abs(sum / 8192 - mean) <= 1e-4 * mean, `column ${i}: ${sum / 8192}, not ${mean}`);
  }

  const config = { dialect: 'gguf', recipe: 'q4_k_m' };
  const plain = await written(quantizer, model, config, {});
  const direct = await written(quantizer, model, config, { calibration: { tokens } });
  const through = await written(quantizer, model, config, { gguf: { imatrix: matrix, imatrixName: 'm.gguf' } });
  const [before, a, b] = await Promise.all([plain, direct, through].map(({ bytes }) => tensorsOf(t, quantizer, bytes)));
  assert.deepEqual(b.tensors, a.tensors);
  assert.notDeepEqual(a.tensors.get('blk.0.ffn_down.weight'), before.tensors.get('blk.0.ffn_down.weight'));
  assert.equal(b.metadata['quantize.imatrix.file'], 'm.gguf');
  assert.equal(b.metadata['quantize.imatrix.dataset'], 'calib');
  assert.equal(b.metadata['quantize.imatrix.entries_count'], '28');
  assert.equal(a.metadata['quantize.imatrix.file'], undefined);
  for (const [{ report }, where] of [
    [direct, 'calibration'],
    [through, 'imatrix'],
  ]) {
    const used = report.diagnostics.find(({ code }) => code === 'importance-used');
    assert.equal(used.where, where);
    assert.equal(used.severity, 'note');
    assert.match(used.message, /^26 tensors .* none for (output|token_embd)\.weight, (output|token_embd)\.weight$/);
  }

  const dat = await quantizer.languageModel(model).importance({ calibration: { tokens }, format: 'dat' });
  const byDat = await tensorsOf(
    t,
    quantizer,
    (await written(quantizer, model, config, { gguf: { imatrix: dat } })).bytes,
  );
  assert.deepEqual(byDat.tensors, a.tensors); // 32 chunks divide without rounding
});

test('importance improves the outputs of the layers that it covers', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, tokensFile);
  const matrix = await quantizer.languageModel(model).importance({ calibration: { tokens } });
  const { tensors } = await tensorsOf(t, quantizer, matrix);
  const weighed = async (options) => {
    const { bytes } = await written(quantizer, model, { dialect: 'gguf', recipe: 'q2_k', pure: true }, options);
    const back = memoryStream();
    const opened = await modelFor(t, quantizer, bytes);
    await quantizer.quantizeModel(opened, 'f32', { target: back.stream });
    return (await tensorsOf(t, quantizer, back.bytes())).tensors;
  };
  const original = memoryStream();
  await quantizer.quantizeModel(model, 'f32', { target: original.stream });
  const exact = (await tensorsOf(t, quantizer, original.bytes())).tensors;
  const [plain, important] = [await weighed({}), await weighed({ gguf: { imatrix: matrix } })];
  const floats = (bytes) => new Float32Array(bytes.slice().buffer);
  for (const name of ['blk.1.attn_q.weight', 'blk.3.ffn_up.weight']) {
    const importance = floats(tensors.get(`${name}.in_sum2`));
    const x = floats(exact.get(name));
    const error = (found) =>
      floats(found.get(name)).reduce((sum, y, i) => sum + importance[i % importance.length] * (x[i] - y) ** 2, 0);
    assert.ok(error(important) < 0.95 * error(plain), `${name}: ${error(important)} of ${error(plain)}`);
  }
});

test('matrices of other models and files that are not matrices are refused; types that do not use one are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const config = { dialect: 'gguf', recipe: 'q4_0' };
  const plan = (imatrix, recipe = 'q4_0') => quantizer.plan(model, { ...config, recipe }, { gguf: { imatrix } });
  await assert.rejects(plan(new Uint8Array(12)), { code: 'file-invalid', where: /^imatrix/ });
  await assert.rejects(plan(readFileSync(join(tinyLlama, 'config.json'))), { code: 'file-invalid' });
  /** .dat of one weight. */
  const dat = (name, columns) => {
    const bytes = Buffer.alloc(4 + 4 + name.length + 8 + 4 * columns);
    bytes.writeInt32LE(1, 0);
    bytes.writeInt32LE(name.length, 4);
    bytes.write(name, 8);
    bytes.writeInt32LE(1, 8 + name.length);
    bytes.writeInt32LE(columns, 12 + name.length);
    for (let i = 0; i < columns; ++i) bytes.writeFloatLE(1 + i, 16 + name.length + 4 * i);
    return bytes;
  };
  await assert.rejects(plan(dat('blk.0.attn_q.weight', 128)), { code: 'shape-mismatch', where: 'blk.0.attn_q.weight' });
  await assert.rejects(plan(dat('blk.9.attn_q.weight', 256)), { code: 'argument-invalid', message: /another model/ });
  const some = (await plan(dat('blk.0.attn_q.weight', 256))).diagnostics.find(({ code }) => code === 'importance-used');
  assert.equal(some.severity, 'warning');
  assert.match(some.message, /^1 tensors .* and 21 more$/);
  const codesOf = async (recipe) =>
    (await plan(dat('blk.0.attn_q.weight', 256), recipe)).diagnostics.map(({ code }) => code);
  assert.ok((await codesOf('q8_0')).includes('importance-unused'));
  assert.ok(!(await codesOf('q2_k_s')).includes('needs-importance'));
  await assert.rejects(quantizer.languageModel(model).importance({}), {
    code: 'argument-invalid',
    where: 'calibration',
  });
  await assert.rejects(quantizer.languageModel(model).importance({ calibration: [] }), {
    code: 'argument-invalid',
  });
});

test('activations replace tokens, also for models without a forward pass here', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const layers = model.tensors.filter(({ name }) => /layers\.\d.*proj\.weight$/.test(name));
  const calibration = layers.map(({ layer, shape }) => ({
    layer,
    role: 'input',
    shape: [2, shape[1]],
    data: Float32Array.from({ length: 2 * shape[1] }, (_, i) => (i % shape[1]) + 1),
  }));
  const { tensors } = await tensorsOf(t, quantizer, await quantizer.languageModel(model).importance({ calibration }));
  const sums = new Float32Array(tensors.get('blk.1.attn_k.weight.in_sum2').slice().buffer);
  assert.deepEqual([...sums.slice(0, 3)], [2, 8, 18]);
});

test('command line: imatrix, quantize --imatrix, quantize --calibration', async (t) => {
  const folder = scratchFolder(t);
  const [matrix, dat, a, b] = ['m.gguf', 'm.dat', 'a.gguf', 'b.gguf'].map((name) => join(folder, name));
  for (const [out, format] of [
    [matrix, 'gguf'],
    [dat, 'dat'],
  ]) {
    const { code, stderr, document } = await cliJson(['imatrix', tinyLlama, '--tokens', tokensFile, '-o', out]);
    assert.equal(code, 0, stderr);
    assert.equal(document.format, format);
    assert.equal(document.bytes, readFileSync(out).length);
  }
  assert.equal((await cli(['imatrix', tinyLlama, '--tokens', tokensFile, '-o', matrix])).code, 1, 'exists');
  const quantize = ['quantize', tinyLlama, '-p', 'iq4_nl'];
  const first = await cliJson([...quantize, '-o', a, '--imatrix', matrix]);
  assert.equal(first.code, 0, first.stderr);
  const second = await cliJson([...quantize, '-o', b, '--calibration', tokensFile]);
  assert.equal(second.code, 0, second.stderr);
  const quantizer = await quantizerFor(t);
  const [x, y] = await Promise.all([a, b].map((file) => tensorsOf(t, quantizer, readFileSync(file))));
  assert.deepEqual(x.tensors, y.tensors);
  const missing = await cliJson([...quantize, '-o', join(folder, 'c.gguf'), '--imatrix', join(folder, 'none')]);
  assert.equal(missing.code, 1);
  assert.equal(missing.document.error.code, 'source-invalid');
  writeFileSync(join(folder, 'bad'), 'nothing');
  const bad = await cliJson(['plan', tinyLlama, '-p', 'q4_0', '--imatrix', join(folder, 'bad')]);
  assert.equal(bad.document.error.code, 'file-invalid');
});
