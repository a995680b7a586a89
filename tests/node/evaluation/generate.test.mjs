// Greedy continuations by the built-in forward pass.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { noise } from '../onnx/model.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const reference = join(files, 'tiny-llama-reference');
const length = 256;

function tokenizer() {
  const json = (name) => JSON.parse(readFileSync(join(tinyLlama, name), 'utf8'));
  return new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
}

test('the first token is the argmax of the reference logits', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const { data: ids } = readTensors(join(reference, 'eval_tokens.safetensors')).get('input_ids');
  const { data: logits } = readTensors(join(reference, 'logits_f32.safetensors')).get('logits');
  const vocabulary = logits.length / (2 * length);
  for (const row of [0, 1])
    for (const known of [2, 30, length]) {
      const last = (row * length + known - 1) * vocabulary;
      const expected = logits.subarray(last, last + vocabulary);
      const tokens = ids.subarray(row * length, row * length + known);
      const found = await quantizer.languageModel(model).generate({ tokens, count: 1 });
      assert.deepEqual(found.tokens, [expected.indexOf(Math.max(...expected))], `row ${row}, ${known} tokens`);
      assert.equal(found.text, null);
      assert.equal(found.promptTokens, known);
    }
});

test('the same text for 0 and 2 threads, and step by step', async (t) => {
  const prompt = 'And the king said unto ';
  const found = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    found.push(
      await quantizer.languageModel(model).generate({ text: prompt, tokenizer: tokenizer(), count: 20, onProgress }),
    );
    const last = seen.at(-1);
    assert.equal(last.bytesDone, last.bytesTotal);
    assert.equal(last.index, last.count);
    assert.equal(quantizer.liveObjects, 1, 'the model');
    if (threads === 2) {
      const tokens = [256, ...Buffer.from(prompt)];
      for (const expected of found[0].tokens.slice(0, 4)) {
        tokens.push(...(await quantizer.languageModel(model).generate({ tokens, count: 1 })).tokens);
        assert.equal(tokens.at(-1), expected);
      }
    }
  }
  const [first, second] = found;
  assert.deepEqual(second.tokens, first.tokens);
  assert.equal(second.text, first.text);
  assert.equal(first.text, Buffer.from(first.tokens).toString());
  assert.match(first.text, /^[a-z ,]{10,}$/i);
  assert.equal(first.stopped, 'count');
  assert.equal(first.promptTokens, prompt.length + 1);
});

test("quantized models generate, too; sequences end at the model's end token", async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const target = join(scratchFolder(t), 'int8');
  await quantizer.quantizeModel(source, 'int8', { target });
  const quantized = await modelFor(t, quantizer, target);
  const options = { text: 'In the beginning ', tokenizer: tokenizer(), count: 12 };
  const [before, after] = [
    await quantizer.languageModel(source).generate(options),
    await quantizer.languageModel(quantized).generate(options),
  ];
  assert.equal(after.text.slice(0, 4), before.text.slice(0, 4));

  const tokens = new Array(length - 1).fill(32);
  const full = await quantizer.languageModel(source).generate({ tokens, count: 50 });
  assert.equal(full.stopped, 'length');
  assert.equal(full.tokens.length, 2, 'the last token needs no position');
});

test('a token of eos_token_id is the last', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const options = { text: 'And the king said unto ', tokenizer: tokenizer(), count: 6 };
  const { tokens } = await quantizer.languageModel(source).generate(options);
  const folder = scratchFolder(t);
  cpSync(join(tinyLlama, 'model.safetensors'), join(folder, 'model.safetensors'));
  const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, eos_token_id: [257, tokens[2]] }));
  const ended = await quantizer.languageModel(await modelFor(t, quantizer, folder)).generate(options);
  assert.deepEqual(ended.tokens, tokens.slice(0, tokens.indexOf(tokens[2]) + 1));
  assert.equal(ended.stopped, 'end');
});

test('prompts that cannot be continued', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const refused = (options, message) =>
    assert.rejects(quantizer.languageModel(model).generate(options), { code: 'argument-invalid', message });
  await refused({}, /exactly one/);
  await refused({ tokens: [1, 2], text: 'a' }, /exactly one/);
  await refused({ text: 'abc' }, /tokenizer/);
  await refused({ tokens: [1] }, /1 tokens; at least 2/);
  await refused({ tokens: [1, 288] }, /token 288 at position 1/);
  await refused({ tokens: [1, 0.5] }, /0\.5 is not a token id/);
  await refused({ tokens: [1, 2], count: 0 }, /count/);
  await refused({ tokens: new Array(257).fill(1) }, /257 tokens.*max_position_embeddings 256/);
  const controller = new AbortController();
  const reason = new Error('enough');
  const onProgress = () => controller.abort(reason);
  const stopped = quantizer
    .languageModel(model)
    .generate({ tokens: [1, 2], count: 200, signal: controller.signal, onProgress });
  await assert.rejects(stopped, (error) => error === reason);
});

test('with cached keys and values, each token equals that of a pass over all earlier tokens, in every family', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  for (const family of readdirSync(join(files, 'forward'))) {
    const language = quantizer.languageModel(await modelFor(t, quantizer, join(files, 'forward', family)));
    // What a decoder behind an encoder has written is no part of its prompt.
    if ((await language.isEncoder()) || family.endsWith('_decoder')) continue;
    const prompt = [3, 1, 4, 1, 5, 9];
    const { tokens } = await language.generate({ tokens: prompt, count: 14 });
    for (const [place, token] of tokens.entries()) {
      const known = [...prompt, ...tokens.slice(0, place)];
      assert.deepEqual((await language.generate({ tokens: known, count: 1 })).tokens, [token], `${family}, ${place}`);
    }
  }
});

test('weights that do not fit in memory are read again for each token, with the same tokens', async (t) => {
  const folder = scratchFolder(t);
  const config = JSON.parse(readFileSync(join(files, 'forward/llama/config.json'), 'utf8'));
  const sizes = { vocab_size: 40_000, hidden_size: 256, intermediate_size: 64, num_hidden_layers: 1, head_dim: 32 };
  const heads = {
    attention_bias: false,
    mlp_bias: false,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    tie_word_embeddings: true,
    eos_token_id: null,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...sizes, ...heads }));
  const block = 'model.layers.0';
  const shapes = {
    'model.embed_tokens.weight': [40_000, 256],
    'model.norm.weight': [256],
    [`${block}.input_layernorm.weight`]: [256],
    [`${block}.post_attention_layernorm.weight`]: [256],
    ...Object.fromEntries(['q', 'k', 'v'].map((name) => [`${block}.self_attn.${name}_proj.weight`, [64, 256]])),
    [`${block}.self_attn.o_proj.weight`]: [256, 64],
    ...Object.fromEntries(['gate', 'up'].map((name) => [`${block}.mlp.${name}_proj.weight`, [64, 256]])),
    [`${block}.mlp.down_proj.weight`]: [256, 64],
  };
  const tensors = Object.entries(shapes).map(([name, shape], i) => {
    const data = noise(
      shape.reduce((product, size) => product * size, 1),
      i + 1,
    );
    return [name, { shape, data }];
  });
  writeFloats(join(folder, 'model.safetensors'), new Map(tensors));
  const found = [];
  for (const memoryBudgetBytes of [2 ** 26, 2 ** 29]) {
    const quantizer = await quantizerFor(t, { threads: 1, memoryBudgetBytes });
    const language = quantizer.languageModel(await modelFor(t, quantizer, folder));
    found.push((await language.generate({ tokens: [7, 39_999, 12], count: 8 })).tokens);
  }
  assert.deepEqual(found[0], found[1]);
  assert.equal(found[0].length, 8);
});
