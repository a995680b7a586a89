// GGUF's 1- to 3-bit types from end to end: written, read again as the source of other formats, with entries that algorithms choose.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const name = 'blk.0.attn_q.weight';

/** Relative errors of what libggml 0.27 makes of this weight, decoded by gguf-py; with a matrix of ones where it needs one. */
const errors = {
  iq3_s: 0.16756949,
  iq3_xxs: 0.21212973,
  iq2_s: 0.26405856,
  iq2_xs: 0.29813984,
  iq2_xxs: 0.34288567,
  iq1_s: 0.47810546,
  iq1_m: 0.5783658,
};

async function written(quantizer, model, config, options = {}) {
  const { stream, bytes } = memoryStream();
  const report = await quantizer.quantizeModel(model, config, { target: stream, ...options });
  return { bytes: bytes(), report };
}

async function floatsOf(t, quantizer, bytes) {
  const { bytes: plain } = await written(quantizer, await modelFor(t, quantizer, bytes), {
    dialect: 'gguf',
    recipe: 'f32',
  });
  const model = await modelFor(t, quantizer, plain);
  const { begin, end } = model.tensors.find((tensor) => tensor.name === name);
  return new Float32Array(plain.slice(begin, end).buffer);
}

test('each type holds the weights, and a file of it becomes F32 again', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const exact = await floatsOf(t, quantizer, (await written(quantizer, source, 'f32')).bytes);
  for (const [type, expected] of Object.entries(errors)) {
    const config = { dialect: 'gguf', recipe: 'f16', layers: { [name]: type } };
    const { bytes } = await written(quantizer, source, config);
    const model = await modelFor(t, quantizer, bytes);
    assert.equal(model.tensors.find((tensor) => tensor.name === name).dtype, type);
    const values = await floatsOf(t, quantizer, bytes);
    const noise = exact.reduce((sum, x, i) => sum + (x - values[i]) ** 2, 0);
    const error = Math.sqrt(noise / exact.reduce((sum, x) => sum + x * x, 0));
    assert.ok(Math.abs(error - expected) < 1e-6, `${type}: ${error}`);
  }
});

test('recipes that need an importance matrix say so', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const codes = ({ diagnostics }) => diagnostics.map(({ code }) => code);
  const { bytes, report } = await written(quantizer, source, 'iq2_xxs');
  assert.ok(codes(report).includes('needs-importance'), codes(report).join());
  const model = await modelFor(t, quantizer, bytes);
  assert.equal(model.metadata['general.file_type'], '19');
});

test('entries that GPTQ chooses lose less, in a file of the same types', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const text = readFileSync(join(tinyLlama, 'README.md'));
  const tokensFrom = (begin, count) => ({
    data: Int32Array.from(text.subarray(begin, begin + 256 * count)),
    shape: [count, 256],
  });
  const [calibration, report] = [{ tokens: tokensFrom(0, 8) }, tokensFrom(256 * 8, 4)];
  for (const recipe of ['iq3_s', 'iq2_xs', 'iq1_m']) {
    const plain = { dialect: 'gguf', recipe, layers: { '*ffn*': recipe, '*attn*': recipe } };
    const losses = [];
    const types = [];
    for (const [config, options] of [
      [plain, {}],
      [quantizer.presetConfig(plain, { best: true }), { calibration }],
    ]) {
      const model = await modelFor(t, quantizer, (await written(quantizer, source, config, options)).bytes);
      types.push(model.tensors.map(({ name: tensor, dtype }) => `${tensor} ${dtype}`).sort());
      const given = { tokens: report, against: source, activations: 'float32' };
      losses.push((await quantizer.languageModel(model, { source }).evaluate(given)).divergence.meanKld);
    }
    assert.deepEqual(types[1], types[0]);
    assert.ok(losses[1] < 0.7 * losses[0], `${recipe}: ${losses}`);
  }
});
