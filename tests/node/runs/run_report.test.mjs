// Reports of runs: plan and errors, and what compare says of the same files.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';
import { int4 } from './run_sources.mjs';

test('the report carries the plan and the error of every quantized tensor', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const plan = await quantizer.plan(model, int4);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, int4, { target });
  assert.deepEqual(report.totals, plan.totals);
  assert.equal(report.threads, 1);
  assert.ok(report.durationMs > 0);
  assert.deepEqual(
    report.tensors.map(({ error: _, ...rest }) => rest),
    plan.tensors.map(({ outputs: _, ...rest }) => rest),
  );
  for (const tensor of report.tensors) {
    if (tensor.action === 'copy') assert.equal(tensor.error, null, tensor.name);
    else assert.ok(tensor.error.sqnrDb > 15 && tensor.error.sqnrDb < 30 && tensor.error.cosine > 0.98, tensor.name);
  }
  assert.equal(statSync(join(target, 'model.safetensors')).size, plan.files[0].bytes);
});

test('the error in the report is that of the decoded output', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const data = noise(64 * 256, 11);
  const model = await modelFor(t, quantizer, safetensors({ 'a.weight': { dtype: 'F32', shape: [64, 256], data } }));
  const { stream, bytes } = memoryStream();
  const report = await quantizer.quantizeModel(model, 'int8', { target: stream, format: 'fake-quantized' });
  const { header, data: tensor } = parsed(bytes());
  assert.equal(header['a.weight'].dtype, 'F32');
  const decoded = new Float32Array(tensor('a.weight').buffer);
  let [signal, noiseSum, maxAbs, dot, power] = [0, 0, 0, 0, 0];
  for (const [i, x] of data.entries()) {
    const y = decoded[i];
    signal += x * x;
    power += y * y;
    dot += x * y;
    noiseSum += (x - y) ** 2;
    maxAbs = Math.max(maxAbs, Math.abs(x - y));
  }
  const { error } = report.tensors[0];
  const near = (actual, expected, what) =>
    assert.ok(Math.abs(actual / expected - 1) < 1e-6, `${what}: ${actual}, expected ${expected}`);
  near(error.sqnrDb, 10 * Math.log10(signal / noiseSum), 'sqnrDb');
  near(error.mse, noiseSum / data.length, 'mse');
  near(error.maxAbs, maxAbs, 'maxAbs');
  near(error.cosine, dot / Math.sqrt(signal * power), 'cosine');
});

test('compare measures what the run reported', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  for (const [format, config] of [
    ['compressed-tensors', int4],
    ['compressed-tensors', 'int8'],
    ['compressed-tensors', 'fp8'],
    ['quark', 'uint4_wo_32'],
    ['fake-quantized', int4],
  ]) {
    const target = join(scratchFolder(t), 'out');
    const report = await quantizer.quantizeModel(model, config, { target, format });
    const quantized = await modelFor(t, quantizer, target);
    const compared = await quantizer.compare(model, quantized);
    const byName = new Map(compared.tensors.map((tensor) => [tensor.name, tensor]));
    for (const tensor of report.tensors.filter(({ error }) => error)) {
      const found = byName.get(tensor.name);
      assert.ok(found?.error, `${format} ${config}: ${tensor.name} is compared`);
      assert.ok(
        Math.abs(found.error.sqnrDb - tensor.error.sqnrDb) < 1e-3,
        `${format} ${config}: ${tensor.name} ${found.error.sqnrDb} dB, reported ${tensor.error.sqnrDb}`,
      );
    }
    assert.deepEqual(compared.diagnostics, []);
    assert.ok(!('format' in compared) && !('identity' in compared));
  }
});

test('only a plan says that it is of a calibrated run', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const target = new WritableStream();
  const refused = { code: 'argument-invalid', detail: /no option "calibrated"/ };
  await assert.rejects(quantizer.quantizeModel(model, 'fp8', { target, calibrated: true }), refused);
  await assert.rejects(quantizer.preview(model, 'fp8', [], { calibrated: true }), refused);
  assert.equal((await quantizer.plan(model, 'fp8', { calibrated: true })).format, 'compressed-tensors');
});

test('a model compared with itself has no error', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const progress = [];
  const { tensors, totals } = await quantizer.compare(model, model, { onProgress: (step) => progress.push(step) });
  assert.ok(tensors.length > 30);
  for (const { error } of tensors)
    assert.deepEqual(error, { sqnrDb: Number.POSITIVE_INFINITY, mse: 0, maxAbs: 0, cosine: 1 });
  assert.equal(totals.quantized, 0);
  assert.equal(totals.bytesBefore, totals.bytesAfter);
  assert.equal(progress.at(-1).bytesDone, progress.at(-1).bytesTotal);
});
