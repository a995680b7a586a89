// Evaluation: perplexity and bits per byte by the built-in forward pass. Numbers: tests/files/tiny-llama/README.md.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

const reference = join(files, 'tiny-llama-reference');

const near = (actual, expected, tolerance, message) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${message}: ${actual}, expected ${expected}`);

test('bits per byte of tiny-llama on the validation text', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, join(reference, 'validation_tokens.safetensors'));
  const seen = [];
  const found = await quantizer
    .languageModel(model)
    .evaluate({ tokens, onProgress: (progress) => seen.push(progress) });
  near(found.bitsPerByte, 1.5088, 1e-3, 'bits per byte');
  assert.equal(found.bitsPerByte, found.bitsPerToken);
  near(found.perplexity, 2 ** found.bitsPerToken, 1e-9, 'perplexity');
  assert.equal(found.tokens, 128 * 255);
  assert.equal(found.bytes, 128 * 255);
  assert.equal(found.sequenceLosses.length, 128);
  const last = seen.at(-1);
  assert.equal(last.phase, 'evaluate');
  assert.equal(last.bytesDone, last.bytesTotal);
  assert.equal(last.index, last.count);
  assert.ok(seen.every(({ bytesDone }, i) => i === 0 || bytesDone >= seen[i - 1].bytesDone));
});

test('the result does not depend on threads, memory or the other sequences', async (t) => {
  const losses = [];
  for (const options of [{ threads: 0 }, { threads: 1 }, { threads: 3, memoryBudgetBytes: 180 * 1024 * 1024 }]) {
    const quantizer = await quantizerFor(t, options);
    const model = await modelFor(t, quantizer, tinyLlama);
    const found = await quantizer.languageModel(model).evaluate({ tokens: tokensOf('eval', 5) });
    losses.push(found.sequenceLosses);
    assert.equal(quantizer.liveObjects, 1, 'the model');
  }
  assert.deepEqual(losses[1], losses[0]);
  assert.deepEqual(losses[2], losses[0]);
});

test('shards in bfloat16 and quantized folders are evaluated as they are', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf('validation', 16);
  const evaluate = async (model, options = {}) =>
    (await quantizer.languageModel(model).evaluate({ tokens, ...options })).bitsPerToken;
  const plain = await evaluate(source);
  near(await evaluate(await modelFor(t, quantizer, join(tinyLlama, 'bf16'))), plain, 2e-3, 'bf16');

  const weight = (spec) => ({ global_quant_config: { weight: { symmetric: true, ...spec } }, exclude: ['lm_head'] });
  const int8 = weight({ dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, observer_cls: 'PerChannelMinMaxObserver' });
  for (const format of ['compressed-tensors', 'quark', 'fake-quantized']) {
    const losses = {};
    for (const [name, config] of Object.entries({ int8, int4: 'int4_wo_32' })) {
      const target = join(folder, `${format}-${name}`);
      await quantizer.quantizeModel(source, config, { target, format });
      losses[name] = await evaluate(await modelFor(t, quantizer, target));
      if (name === 'int8')
        losses.int8_both = await evaluate(await modelFor(t, quantizer, target), { activations: 'int8' });
    }
    near(losses.int8, plain, 2e-3, `${format} int8`);
    assert.ok(losses.int4 > plain + 0.01 && losses.int4 < plain + 0.1, `${format} int4: ${losses.int4}`);
    assert.ok(losses.int8_both > plain + 0.03, `${format} W8A8: ${losses.int8_both}`);
  }
});

test('a model of every family', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const family of ['llama', 'llama_linear', 'mistral', 'qwen2', 'qwen3', 'gemma', 'gemma2', 'gemma3_text']) {
    const folder = join(files, 'forward', family);
    const expected = readTensors(join(folder, 'expected.safetensors'));
    const { data: ids, shape } = expected.get('input_ids');
    const { data: logits } = expected.get('logits');
    const tokens = { data: BigInt64Array.from(ids, BigInt), shape };
    const model = await modelFor(t, quantizer, folder);
    const found = await quantizer.languageModel(model).evaluate({ tokens });
    const vocabulary = logits.length / ids.length;
    let nats = 0;
    for (let i = 0; i + 1 < ids.length; ++i) {
      if ((i + 1) % shape[1] === 0) continue;
      const row = logits.subarray(i * vocabulary, (i + 1) * vocabulary);
      nats += Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0)) - row[Number(ids[i + 1])];
    }
    near(found.bitsPerToken * found.tokens * Math.LN2, nats, 1e-4, family);
    assert.equal(found.bitsPerByte, null, 'there is no tokenizer');
    const told = await quantizer.languageModel(model).evaluate({ tokens, bytesPerToken: 2 });
    near(told.bitsPerByte, told.bitsPerToken / 2, 1e-12, 'bytes per token');
  }
});

test('tokens that do not fit the model', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const refused = (data, shape, message) =>
    assert.rejects(quantizer.languageModel(model).evaluate({ tokens: { data, shape } }), {
      code: 'argument-invalid',
      message,
    });
  await refused([1, 2, 288], [1, 3], /token 288 at position 2 of sequence 0.*288/);
  await refused([1, 2, 3, -1], [2, 2], /token -1 at position 1 of sequence 1/);
  await refused(new BigInt64Array([1n, 1n << 40n]), [1, 2], /token 1099511627776/);
  await refused([1, 2.5], [1, 2], /token 2.5/);
  await refused(new Array(257).fill(1), [1, 257], /257 tokens.*max_position_embeddings 256/);
  await refused([1, 2], [2, 1], /at least 2/);
  await refused([1, 2, 3], [2, 2], /3 tokens of shape \[2, 2\]/);
  await refused([], [0, 0], /0 tokens/);
  await refused([1, 2], [1, 1, 2], /\[sequences, length\]/);
  const other = await modelFor(t, quantizer, join(reference, 'logits_f32.safetensors'));
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens: other }), {
    code: 'dtype-unsupported',
    where: 'logits',
  });
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens: other, tensor: 'ids' }), {
    code: 'tensor-missing',
  });
  await assert.rejects(
    quantizer.languageModel(model).evaluate({ tokens: { data: [1, 2], shape: [2] }, activations: 'int4' }),
    {
      code: 'argument-invalid',
      where: 'activations',
    },
  );
});

test('models that a forward pass cannot run', async (t) => {
  const quantizer = await quantizerFor(t);
  const tokens = { data: [1, 2, 3], shape: [3] };
  const base = join(files, 'forward/qwen2');
  const config = JSON.parse(readFileSync(join(base, 'config.json'), 'utf8'));
  const refused = async (change, error) => {
    const folder = scratchFolder(t);
    cpSync(join(base, 'model.safetensors'), join(folder, 'model.safetensors'));
    if (change) writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...change }));
    await assert.rejects(quantizer.languageModel(await modelFor(t, quantizer, folder)).evaluate({ tokens }), error);
  };
  await refused(null, { code: 'config-invalid', where: 'config.json' });
  await refused(
    { model_type: 'falcon_h2' },
    { code: 'not-implemented', message: /"falcon_h2".*such as .*falcon.*without/s },
  );
  await refused({ hidden_size: undefined }, { code: 'config-invalid', where: '/hidden_size' });
  await refused({ hidden_size: 1e9 }, { code: 'config-invalid', where: '/hidden_size' });
  await refused({ num_key_value_heads: 3 }, { code: 'config-invalid', where: '/num_key_value_heads' });
  await refused({ hidden_act: 'quick_gelu' }, { code: 'not-implemented', where: '/hidden_act' });
  await refused({ rope_parameters: { rope_type: 'ntk' } }, { code: 'not-implemented', message: /ntk/ });
  await refused({ layer_types: ['full_attention'] }, { code: 'config-invalid', where: '/layer_types' });
  await refused(
    { num_hidden_layers: 4, layer_types: undefined },
    { code: 'tensor-missing', where: /^model\.layers\.3\./ },
  );
  await refused({ intermediate_size: 32 }, { code: 'shape-mismatch', message: /\[28, 24\].*\[32, 24\]/ });
  await refused({ vocab_size: 50 }, { code: 'shape-mismatch', where: 'model.embed_tokens.weight' });
});

test('overflowing weights are an error, not a result', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const base = join(files, 'forward/mistral');
  cpSync(join(base, 'config.json'), join(folder, 'config.json'));
  const tensors = readTensors(join(base, 'model.safetensors'));
  tensors.get('model.layers.1.mlp.down_proj.weight').data.fill(Number.NaN);
  writeFloats(join(folder, 'model.safetensors'), tensors);
  const model = await modelFor(t, quantizer, folder);
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens: { data: [1, 2, 3], shape: [3] } }), {
    code: 'value-not-finite',
  });
});

test('a signal ends an evaluation, and the quantizer keeps working', async (t) => {
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const tokens = tokensOf('validation', 32);
    const controller = new AbortController();
    const reason = new Error('enough');
    const stopped = quantizer.languageModel(model).evaluate({
      tokens,
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    });
    await assert.rejects(stopped, (error) => error === reason);
    const again = await quantizer.languageModel(model).evaluate({ tokens: tokensOf('eval', 1) });
    assert.ok(again.bitsPerByte > 1 && again.bitsPerByte < 2);
  }
});

test('a budget too small for one block is refused with the bytes that are needed', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1, memoryBudgetBytes: 96 * 1024 * 1024 });
  const folder = scratchFolder(t);
  const wide = { hidden_size: 64, intermediate_size: 30000, num_hidden_layers: 1, vocab_size: 16 };
  const config = JSON.parse(readFileSync(join(files, 'forward/mistral/config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...wide, tie_word_embeddings: true }));
  const zeros = (...shape) => ({ shape, data: new Float32Array(shape.reduce((count, size) => count * size, 1)) });
  const layer = (name) => `model.layers.0.${name}.weight`;
  const tensors = new Map([
    ['model.embed_tokens.weight', zeros(16, 64)],
    ['model.norm.weight', zeros(64)],
    [layer('input_layernorm'), zeros(64)],
    [layer('post_attention_layernorm'), zeros(64)],
    [layer('self_attn.q_proj'), zeros(48, 64)],
    [layer('self_attn.k_proj'), zeros(24, 64)],
    [layer('self_attn.v_proj'), zeros(24, 64)],
    [layer('self_attn.o_proj'), zeros(64, 48)],
    [layer('mlp.gate_proj'), zeros(30000, 64)],
    [layer('mlp.up_proj'), zeros(30000, 64)],
    [layer('mlp.down_proj'), zeros(64, 30000)],
  ]);
  writeFloats(join(folder, 'model.safetensors'), tensors);
  const model = await modelFor(t, quantizer, folder);
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens: { data: [1, 2, 3], shape: [3] } }), {
    code: 'memory-budget',
    where: 'memoryBudgetBytes',
  });
});
