// Plans of models with many tensors, which a worker makes: the same plan, and a thread that stays free.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { planNow } from '../../../dist/internal.js';
import { modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
const { hidden_size: hidden, intermediate_size: inner, vocab_size: vocabulary } = config;
const rows = (heads) => (hidden / config.num_attention_heads) * heads;

/** A Llama of so many layers, all of whose weights are 0; `prefix` stands before each name. */
function llama(layers, prefix = '') {
  const header = {};
  let end = 0;
  const add = (name, shape) => {
    const begin = end;
    end += 2 * shape.reduce((product, size) => product * size, 1);
    header[prefix + name] = { dtype: 'BF16', shape, data_offsets: [begin, end] };
  };
  add('model.embed_tokens.weight', [vocabulary, hidden]);
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q', 'k', 'v'])
      add(`${at}.self_attn.${name}_proj.weight`, [
        rows(name === 'q' ? config.num_attention_heads : config.num_key_value_heads),
        hidden,
      ]);
    add(`${at}.self_attn.o_proj.weight`, [hidden, rows(config.num_attention_heads)]);
    for (const name of ['gate', 'up']) add(`${at}.mlp.${name}_proj.weight`, [inner, hidden]);
    add(`${at}.mlp.down_proj.weight`, [hidden, inner]);
    for (const name of ['input', 'post_attention']) add(`${at}.${name}_layernorm.weight`, [hidden]);
  }
  add('model.norm.weight', [hidden]);
  add('lm_head.weight', [vocabulary, hidden]);
  const text = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(8 + text.length);
  head.writeBigUInt64LE(BigInt(text.length));
  text.copy(head, 8);
  const read = async (offset, length) => {
    const bytes = new Uint8Array(length);
    bytes.set(head.subarray(offset, offset + length));
    return bytes;
  };
  const own = JSON.stringify({ ...config, num_hidden_layers: layers });
  const tokenizer = new File([readFileSync(join(tinyLlama, 'tokenizer.json'))], 'tokenizer.json');
  const weights = { name: 'model.safetensors', size: head.length + end, read };
  return [weights, new File([own], 'config.json'), tokenizer];
}

test('a worker plans what this thread plans, of every format', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, llama(40));
  assert.ok(model.tensors.length > 300);
  for (const [preset, options] of [
    ['int4_wo_64', {}],
    ['fp8', { format: 'quark', calibrated: true }],
    ['q4_k_m', { gguf: { shardBytes: 1e6 } }],
    [{ global_quant_config: { weight: { dtype: 'int8', qscheme: 'per_tensor' } } }, { format: 'fake-quantized' }],
  ]) {
    const plan = await quantizer.plan(model, preset, options);
    assert.deepEqual(plan, planNow(quantizer, model, preset, options), JSON.stringify(preset));
    assert.equal(plan.tensors[0].name, model.tensors[0].name);
  }
  const other = await quantizer.open(llama(50, '_orig_mod.'), { stripPrefix: true });
  t.after(() => other.close());
  assert.deepEqual(await quantizer.plan(other, 'int8'), planNow(quantizer, other, 'int8'));
  await assert.rejects(quantizer.plan(model, 'int9'), { code: 'config-invalid' });
  await assert.rejects(quantizer.plan(model, 'int4_wo_128', { format: 'mlx' }), { code: 'format-unsupported' });
});

test('planning leaves the thread free, and can be cancelled', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, llama(600));
  await quantizer.plan(model, 'int8'); // the worker has started
  /** How often the thread turned to other work while `planner` planned. */
  const turnsOf = async (planner, of) => {
    let [turns, isDone] = [0, false];
    const turn = () => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await planner.plan(of, 'int8');
    isDone = true;
    return turns;
  };
  const alone = await quantizerFor(t, { threads: 0 });
  const blocked = await turnsOf(alone, await modelFor(t, alone, llama(600)));
  const free = await turnsOf(quantizer, model);
  assert.ok(free > 5 * blocked, `${free} turns, ${blocked} without a worker`);
  const controller = new AbortController();
  const planned = quantizer.plan(model, 'fp8', { signal: controller.signal });
  controller.abort();
  await assert.rejects(planned, { name: 'AbortError' });
  await model.close();
  await assert.rejects(quantizer.plan(model, 'int8'), { code: 'state-invalid' });
});

test('a plan does not wait for workers that are busy', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, llama(40));
  const [first, second] = await Promise.all([quantizer.plan(model, 'int8'), quantizer.plan(model, 'int8')]);
  assert.deepEqual(first, second);
});
