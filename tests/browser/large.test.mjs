// A mixture of experts of 4,000 tensors on the page: no task of the main thread is long, and the table draws what is looked at.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { browserOfTests, chooseRuntime, chosen, picture, quantizeButton, show, someWeights } from './browser.mjs';
import { assertShort, longestTask } from './long_tasks.mjs';

const browser = await browserOfTests();
const layers = 10;
const experts = 130;

/** Names and shapes as Qwen3-MoE has them, the shapes small. */
function tensorsOf() {
  const list = [
    ['model.embed_tokens', [512, 32]],
    ['model.norm', [32]],
    ['lm_head', [512, 32]],
  ];
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q', 'k', 'v', 'o']) list.push([`${at}.self_attn.${name}_proj`, [32, 32]]);
    for (const name of ['input', 'post_attention']) list.push([`${at}.${name}_layernorm`, [32]]);
    list.push([`${at}.mlp.gate`, [experts, 32]]);
    for (let expert = 0; expert < experts; ++expert)
      for (const name of ['gate', 'up', 'down']) list.push([`${at}.mlp.experts.${expert}.${name}_proj`, [32, 32]]);
  }
  return list;
}

function writeModel(folder) {
  const header = {};
  let end = 0;
  for (const [name, shape] of tensorsOf()) {
    const begin = end;
    end += 2 * shape.reduce((product, size) => product * size, 1);
    header[`${name}.weight`] = { dtype: 'BF16', shape, data_offsets: [begin, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  mkdirSync(folder);
  // BF16: the upper halves of F32.
  const values = new Uint32Array(someWeights(end / 2).buffer);
  const weights = Buffer.from(Uint16Array.from(values, (bits) => bits >>> 16).buffer);
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, weights]));
  const config = {
    ...{ architectures: ['Qwen3MoeForCausalLM'], model_type: 'qwen3_moe', hidden_size: 32, num_hidden_layers: layers },
    ...{
      num_attention_heads: 4,
      num_key_value_heads: 4,
      head_dim: 8,
      intermediate_size: 64,
      moe_intermediate_size: 32,
    },
    ...{ num_experts: experts, num_experts_per_tok: 8, vocab_size: 512, rms_norm_eps: 1e-6, rope_theta: 10000 },
    ...{ max_position_embeddings: 512, tie_word_embeddings: false, torch_dtype: 'bfloat16', hidden_act: 'silu' },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return Object.keys(header).length;
}

test('4,000 tensors are opened, filtered and planned again without a task over 100 ms', async () => {
  const folder = join(browser.folder, 'mixture');
  const count = writeModel(folder);
  assert.ok(count >= 4000 - 30, `${count} tensors`);
  const text = count.toLocaleString('en-US');
  const { page, complaints, close } = await browser.open();
  const found = {};
  found.open = await longestTask(page, async () => {
    await page.locator('#folder').setInputFiles(folder);
    await page.locator('.model-facts').getByText(`${text} tensors`).waitFor();
    await quantizeButton(page).and(page.locator(':enabled')).waitFor();
  });
  // In GGUF files, which the page offers first, the experts of a layer are one tensor.
  found.experts = await longestTask(page, async () => {
    const before = await chosen(page);
    await chooseRuntime(page, /^transformers, vLLM/);
    await page.waitForFunction((old) => document.querySelector('.run').dataset.choice !== old, before);
    await quantizeButton(page).and(page.locator(':enabled')).waitFor();
  });
  found.table = await longestTask(page, async () => {
    await show(page, 'Tensors');
    await page.locator('.tensors tbody tr').first().waitFor();
  });
  assert.ok((await page.locator('.tensors tbody tr').count()) <= 60);
  found.search = await longestTask(page, async () => {
    await page.getByRole('searchbox', { name: 'Search tensors' }).fill('experts.7.down');
    await page.locator('.tensors-head').getByText(`${layers} of ${text}`).waitFor();
  });
  const before = await chosen(page);
  found.runtime = await longestTask(page, async () => {
    await chooseRuntime(page, /^AMD Quark/);
    await page.waitForFunction((old) => document.querySelector('.run').dataset.choice !== old, before);
    await quantizeButton(page).and(page.locator(':enabled')).waitFor();
  });
  found.curve = await longestTask(page, async () => {
    await page.getByRole('button', { name: 'Measure what each size costs' }).click();
    await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 300_000 });
  });
  found.run = await longestTask(page, async () => {
    await quantizeButton(page).click();
    await page.locator('.result-head').waitFor({ timeout: 120_000 });
    await page.locator('.worst .link').first().waitFor({ timeout: 120_000 }); // what more bits would buy
  });
  found.again = await longestTask(page, async () => {
    await page.locator('.worst .link').first().click();
    await page.getByRole('button', { name: 'Quantize again' }).click();
    await page.getByText(/[\d,]+ tensors kept/).waitFor({ timeout: 120_000 });
    await page.locator('.worst .link').first().waitFor({ timeout: 120_000 });
  });
  await assertShort(page, found);
  await picture(page, 'light-large');
  assert.deepEqual(complaints, []);
  await close();
});
