// Folders of weights as ONNX models, by a graph that is built of config.json: logits and hidden states are those of transformers
// (tests/files/forward), also token by token with a cache and with padding in front.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as ort from 'onnxruntime-web';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const decoders = ['llama', 'llama_linear', 'mistral', 'qwen2', 'qwen3', 'gemma', 'gemma2', 'gemma3_text'];
const encoders = ['bert', 'roberta', 'camembert', 'distilbert'];
const float = { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['*'] };

/** The folder as ONNX: a session, its file and the report. */
async function written(t, folder, config, options = {}) {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folder);
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, config, { target, format: 'onnx', ...options });
  const [name] = readdirSync(join(target, 'onnx'));
  const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(join(target, 'onnx', name))));
  t.after(() => session.release());
  return { session, name, report, target, quantizer, model };
}

const int64 = (values, dims) => new ort.Tensor('int64', BigInt64Array.from(values.flat(), BigInt), dims);

/** One step of a decoder: rows of tokens and of the mask of all tokens up to now, and the cache. */
async function step(session, tokens, mask, cache = {}) {
  const dims = [tokens.length, tokens[0].length];
  const position = (row) =>
    mask[row].map((_, i) => Math.max(mask[row].slice(0, i + 1).reduce((a, b) => a + b, 0) - 1, 0));
  const places = tokens.map((_, row) => position(row).slice(-dims[1]));
  const feeds = {
    input_ids: int64(tokens, dims),
    attention_mask: int64(mask, [dims[0], mask[0].length]),
    position_ids: int64(places, dims),
  };
  for (const { name, shape } of session.inputMetadata)
    if (name.startsWith('past_key_values'))
      feeds[name] = cache[name] ?? new ort.Tensor('float32', [], [dims[0], shape[1], 0, shape[3]]);
  const { logits, ...present } = await session.run(feeds);
  const next = Object.entries(present).map(([name, value]) => [name.replace('present', 'past_key_values'), value]);
  return { logits: logits.data, cache: Object.fromEntries(next) };
}

function largestDifference(found, expected) {
  assert.equal(found.length, expected.length);
  return found.reduce((largest, value, i) => Math.max(largest, Math.abs(value - expected[i])), 0);
}

const expectedOf = (name) => Object.fromEntries(readTensors(join(files, 'forward', name, 'expected.safetensors')));
const rowsOf = ({ data, shape: [rows, length] }) =>
  Array.from({ length: rows }, (_, row) => Array.from(data.slice(row * length, (row + 1) * length), Number));

test('decoders: logits of transformers, at once and token by token', async (t) => {
  for (const name of decoders) {
    const { session } = await written(t, join(files, 'forward', name), float);
    const { input_ids, logits } = expectedOf(name);
    const tokens = rowsOf(input_ids);
    const [rows, length, vocabulary] = logits.shape;
    const ones = (count) => tokens.map(() => Array(count).fill(1));
    const whole = await step(session, tokens, ones(length));
    assert.ok(largestDifference(whole.logits, logits.data) < 1e-4, `${name}, whole`);
    let { cache } = await step(
      session,
      tokens.map((row) => row.slice(0, 12)),
      ones(12),
    );
    for (let at = 12; at < length; ++at) {
      const next = await step(
        session,
        tokens.map((row) => [row[at]]),
        ones(at + 1),
        cache,
      );
      cache = next.cache;
      for (let row = 0; row < rows; ++row) {
        const from = (row * length + at) * vocabulary;
        const found = next.logits.slice(row * vocabulary, (row + 1) * vocabulary);
        assert.ok(largestDifference(found, logits.data.slice(from, from + vocabulary)) < 1e-4, `${name}, token ${at}`);
      }
    }
  }
});

test('encoders: hidden states of transformers, whose mean and first are its embeddings', async (t) => {
  for (const name of encoders) {
    const { session } = await written(t, join(files, 'forward', name), float);
    const { input_ids, mean, first } = expectedOf(name);
    const [rows, length] = input_ids.shape;
    const feeds = { input_ids: int64(rowsOf(input_ids), [rows, length]) };
    for (const mask of ['attention_mask', 'token_type_ids'])
      if (session.inputNames.includes(mask))
        feeds[mask] = int64(Array(rows * length).fill(mask === 'attention_mask' ? 1 : 0), [rows, length]);
    const { last_hidden_state: states } = await session.run(feeds);
    const width = states.dims[2];
    for (let row = 0; row < rows; ++row) {
      const own = states.data.slice(row * length * width, (row + 1) * length * width);
      const means = Array.from(
        { length: width },
        (_, i) => own.reduce((sum, x, at) => sum + (at % width === i ? x : 0), 0) / length,
      );
      const expected = (values) => values.data.slice(row * width, (row + 1) * width);
      assert.ok(largestDifference(own.slice(0, width), expected(first)) < 1e-5, name);
      assert.ok(largestDifference(means, expected(mean)) < 1e-5, name);
    }
  }
});

test('a folder gets one file after another, which transformers.js finds by their names', async (t) => {
  const { session, target, quantizer, model } = await written(t, tinyLlama, float);
  assert.deepEqual(session.outputNames.slice(0, 3), ['logits', 'present.0.key', 'present.0.value']);
  assert.deepEqual(session.inputNames.slice(0, 3), ['input_ids', 'attention_mask', 'position_ids']);
  for (const preset of ['int4_wo_32', 'int8', 'int8_dynamic'])
    await quantizer.quantizeModel(model, preset, { target, format: 'onnx' });
  const names = readdirSync(join(target, 'onnx')).sort();
  assert.deepEqual(names, ['model.onnx', 'model_int8.onnx', 'model_q4.onnx', 'model_quantized.onnx']);
  assert.ok(readdirSync(target).includes('tokenizer.json'));
  const text = [5, 90, 17, 33, 81, 2, 64];
  const ones = (count) => [Array(count).fill(1)];
  const ours = await (await quantizer.languageModel(model)).generate({ tokens: text, count: 6 });
  const tokens = [...text];
  let { logits, cache } = await step(session, [text], ones(text.length));
  while (tokens.length < text.length + ours.tokens.length) {
    const last = logits.slice(-288);
    tokens.push(last.indexOf(Math.max(...last)));
    ({ logits, cache } = await step(session, [tokens.slice(-1)], ones(tokens.length), cache));
  }
  assert.deepEqual(tokens.slice(text.length), ours.tokens);
});

test('bfloat16 stays as it is stored, codes are decoded, and what has no graph is refused by name', async (t) => {
  const half = await written(t, join(tinyLlama, 'bf16'), float);
  const whole = await written(t, tinyLlama, float);
  assert.ok(half.report.totals.bytesAfter < 0.51 * whole.report.totals.bytesAfter);
  const text = [5, 90, 17, 33, 81, 2, 64];
  const logitsOf = async ({ session }) => (await step(session, [text], [Array(text.length).fill(1)])).logits;
  assert.ok(largestDifference(await logitsOf(half), await logitsOf(whole)) < 0.3);

  const target = join(scratchFolder(t), 'packed');
  await whole.quantizer.quantizeModel(whole.model, 'int8', { target });
  const decoded = await written(t, target, float);
  assert.ok(largestDifference(await logitsOf(decoded), await logitsOf(whole)) < 1);
  assert.ok(decoded.report.tensors.every(({ action }) => action !== 'quantize'));

  const copy = join(scratchFolder(t), 'mixture');
  cpSync(join(files, 'forward', 'gpt_oss'), copy, { recursive: true });
  for (const [type, said] of [
    [
      'gpt_oss',
      /no ONNX graph is built of models of type "gpt_oss": they have mixtures of experts.*or write it as gguf/,
    ],
    ['rwkv', /no ONNX graph is built of models of type "rwkv"\. Export the model to ONNX elsewhere/],
  ]) {
    const settings = JSON.parse(readFileSync(join(copy, 'config.json'), 'utf8'));
    writeFileSync(join(copy, 'config.json'), JSON.stringify({ ...settings, model_type: type }));
    await assert.rejects(written(t, copy, 'int8'), { code: 'format-unsupported', message: said });
  }
});
