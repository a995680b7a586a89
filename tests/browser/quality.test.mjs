// Language models on real text in the page: calibrated algorithms, bits per byte, a plan by budget; progress and cancel.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { createQuantizer } from 'wasmquant';
import { root } from '../setup/command.mjs';
import {
  browserOfTests,
  download,
  openConfig,
  openFile,
  openSample,
  picture,
  quantize,
  quantizeButton,
  sampleFolder,
  show,
  storedRuns,
  writeConfig,
} from './browser.mjs';

const browser = await browserOfTests();

const text = (use) => readFileSync(join(root, `dist/demo/sample/${use}.txt`), 'utf8');

async function inNode(use) {
  const quantizer = await createQuantizer({ threads: 2 });
  const model = await quantizer.open(sampleFolder);
  const json = (name) => JSON.parse(readFileSync(join(sampleFolder, name), 'utf8'));
  const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
  try {
    return await use(quantizer, model, (name) => ({ text: text(name), tokenizer, sequences: 32 }));
  } finally {
    await model.close();
    await quantizer[Symbol.asyncDispose]();
  }
}

async function openWithTexts(scheme) {
  const opened = await browser.open();
  const { page } = opened;
  await openSample(page, scheme);
  await show(page, 'Calibrate and measure');
  await page.getByRole('button', { name: 'Show the built-in texts' }).click();
  await page.waitForFunction(() => document.querySelector('#text-measure').value.length > 30_000);
  return opened;
}

test('GPTQ in the page gives the same bytes and bits per byte as Node, in less than 20 s', async () => {
  const { page, complaints, close } = await openWithTexts();
  await page.getByRole('checkbox', { name: /^GPTQ/ }).check();
  const started = Date.now();
  await quantize(page);
  const seconds = (Date.now() - started) / 1000;
  process.stdout.write(`# GPTQ int4 g128, 32 x 256 tokens, in the tab: ${seconds.toFixed(1)} s\n`);
  assert.ok(seconds < 20, `${seconds} s`);
  await page.getByRole('button', { name: 'Measure the model and run 1' }).click();
  const row = page.getByRole('row', { name: /^Run 1/ });
  await row.waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Let both write' }).click();
  const written = page.locator('.continuation blockquote');
  await written.nth(1).waitFor({ timeout: 60_000 });
  await picture(page, 'light-quality');
  await written.first().scrollIntoViewIfNeeded();
  await picture(page, 'light-written');

  const expected = await inNode(async (quantizer, model, tokens) => {
    const { config } = quantizer.presets().find(({ name }) => name === 'int4_wo_128');
    const target = join(browser.folder, 'gptq');
    const calibration = { tokens: tokens('calibrate') };
    await quantizer.quantizeModel(model, { ...config, algo_config: [{ name: 'gptq' }] }, { target, calibration });
    const before = await quantizer.languageModel(model).evaluate({ tokens: tokens('measure') });
    const quantized = await quantizer.open(target);
    const after = await quantizer.languageModel(quantized).evaluate({ tokens: tokens('measure') });
    const prompt = { text: 'And the king said unto ', tokenizer: tokens('measure').tokenizer, count: 64 };
    const texts = [];
    for (const subject of [model, quantized])
      texts.push((await quantizer.languageModel(subject).generate(prompt)).text);
    await quantized.close();
    return { bytes: readFileSync(join(target, 'model.safetensors')), before, after, texts };
  });
  const saved = readFileSync(await download(page, 'model.safetensors'));
  assert.equal(Buffer.compare(saved, expected.bytes), 0);
  assert.deepEqual(
    await written.allTextContents(),
    expected.texts.map((added) => `And the king said unto ${added}`),
  );
  const cells = await row.locator('td').allTextContents();
  assert.equal(cells[0], expected.after.bitsPerByte.toFixed(4));
  const cost = expected.after.bitsPerByte - expected.before.bitsPerByte;
  const sign = cost < 0 ? '−' : '+';
  assert.ok(cells[1].startsWith(`${sign}${Math.abs(cost).toFixed(4)} ± 0.00`), cells[1]);
  // The command line that the page names measures the same.
  await page.getByText('Measured on the first 32 windows of 256 tokens').waitFor();
  const asked = [
    'evaluate',
    sampleFolder,
    '--text',
    join(root, 'dist/demo/sample/measure.txt'),
    '--sequences',
    '32',
    '--json',
  ];
  const { bitsPerByte } = JSON.parse(execFileSync(process.execPath, [join(root, 'dist/cli.js'), ...asked]));
  assert.equal(bitsPerByte, expected.before.bitsPerByte);
  const first = page.getByRole('row', { name: /^As opened/ });
  assert.ok((await first.textContent()).includes(expected.before.bitsPerByte.toFixed(4)));

  await show(page, 'Report and code');
  const line = await page.getByRole('region', { name: 'Command line', exact: true }).textContent();
  assert.match(line, /--config config\.json .*--calibration-text text\.txt/s);
  assert.deepEqual(complaints, []);
  await close();
});

test('a GGUF output is measured and compared with the model, and continues a text', async () => {
  const { page, complaints, close } = await openWithTexts('q4_k_m');
  await quantize(page);
  await page.getByRole('button', { name: 'Measure the model and run 1' }).click();
  const row = page.getByRole('row', { name: /^Run 1/ });
  await row.waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Let both write' }).click();
  await page.locator('.continuation blockquote').nth(1).waitFor({ timeout: 60_000 });
  await row.scrollIntoViewIfNeeded();
  await picture(page, 'light-quality-gguf');
  const expected = await inNode(async (quantizer, model, tokens) => {
    const target = join(browser.folder, 'expected.gguf');
    await quantizer.quantizeModel(model, 'q4_k_m', { target });
    const quantized = await quantizer.open(target);
    const found = await quantizer.languageModel(quantized, { source: model }).evaluate({ tokens: tokens('measure') });
    await quantized.close();
    return found;
  });
  assert.equal((await row.locator('td').allTextContents())[0], expected.bitsPerByte.toFixed(4));
  assert.deepEqual(complaints, []);
  await close();
});

test('a budget produces a config and the table that led to it', async () => {
  const { page, complaints, close } = await openWithTexts();
  await page.getByLabel('Bits per weight').fill('5');
  await page.getByRole('button', { name: 'Find the best config' }).click();
  const summary = page.locator('.auto-table summary');
  await summary.waitFor({ timeout: 60_000 });
  await summary.click();
  await picture(page, 'light-auto');
  const expected = await inNode((quantizer, model, tokens) =>
    quantizer.languageModel(model).autoConfig({ targetBits: 5, calibration: { tokens: tokens('calibrate') } }),
  );
  assert.ok((await summary.textContent()).startsWith(`${expected.totals.bitsPerWeight.toFixed(2)} bits per weight`));
  assert.equal(await page.locator('.auto-table tbody tr').count(), expected.layers.length);
  assert.equal(await page.locator('.auto-chosen').count(), expected.layers.length);
  await show(page, 'Report and code');
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save config.json' }).click(),
  ]);
  assert.deepEqual(JSON.parse(readFileSync(await saved.path(), 'utf8')), expected.config);
  assert.deepEqual(complaints, []);
  await close();
});

test('the page offers the built-in text for every algorithm that needs one, and for no other', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await openConfig(page);
  const said = page.getByText('Calibrates with the built-in text');
  const note = page.locator('#run-note').filter({ has: said }).or(page.locator('#run-note').and(said));
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  for (const [name, needsText] of [
    ['gptaq', true],
    ['cle', false],
    ['autosmoothquant', true],
  ]) {
    await writeConfig(page, { global_quant_config: { weight }, exclude: ['lm_head'], algo_config: [{ name }] });
    await note.waitFor({ state: needsText ? 'visible' : 'detached' });
    assert.ok(await quantizeButton(page).isEnabled(), name);
  }
  assert.deepEqual(complaints, []);
  await close();
});

test('"Make it better" calibrates with the built-in text, and says how much of the loss that recovers', async () => {
  for (const [scheme, made] of [
    ['int4_wo_128', /^5\.4× smaller, [\d.]+ % more loss$/],
    ['q3_k_m', /^7\.6× smaller, [\d.]+ % more loss$/],
  ]) {
    const { page, complaints, close } = await browser.open();
    await openSample(page, scheme);
    await page.getByRole('button', { name: 'Make it better' }).click();
    await page.getByText(/\d+ % of the loss of plain rounding recovered/).waitFor({ timeout: 120_000 });
    assert.match(await page.locator('.result-head h1').textContent(), made);
    const details = await page.locator('.result-head p').first().textContent();
    assert.match(details, /bits per byte 1\.\d{4} → 1\.\d{4} on \d+ windows of text/);
    await picture(page, `better-${scheme}`);
    // Layers show the error of their outputs, and no figure of plain rounding.
    if (scheme === 'int4_wo_128') {
      await page.getByRole('columnheader', { name: 'output error' }).waitFor();
      assert.equal(await page.locator('.worst .link').count(), 0);
    }
    await page.getByRole('button', { name: 'Try another size' }).click();
    await page.locator('.curve-calibrated.curve-chosen').waitFor({ timeout: 60_000 });
    assert.deepEqual(complaints, []);
    await close();
  }
});

test('calibration reads a text from a file and can be cancelled', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await show(page, 'Calibrate and measure');
  await page.getByRole('checkbox', { name: /^AWQ/ }).check();
  await page.getByRole('checkbox', { name: /^GPTQ/ }).check();
  const button = quantizeButton(page);
  await page.locator('#run-note').getByText('the built-in text').waitFor();
  const file = join(browser.folder, 'text.txt');
  writeFileSync(file, text('calibrate'));
  await page.locator('#text-file-calibrate').setInputFiles(file);
  await page.locator('#run-note').getByText('your text').waitFor();
  await button.click();
  await page.waitForFunction(() => (document.querySelector('.run-progress progress')?.value ?? 0) > 0);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Cancelled. Nothing was saved.', { exact: true }).first().waitFor();
  assert.deepEqual(await storedRuns(page), []);
  assert.ok(await button.isEnabled());

  await page.getByLabel('Text to measure on', { exact: true }).fill(text('measure'));
  await page.getByRole('button', { name: 'Measure the model' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('alert').count(), 0);
  assert.ok(await button.isEnabled());

  await page.getByLabel('Text to measure on', { exact: true }).fill('A short text is one row.');
  await page.getByRole('button', { name: 'Measure the model' }).click();
  await page
    .getByRole('cell', { name: /^\d+\.\d{4}$/ })
    .first()
    .waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('for a model without its tokenizer the page says what is missing', async () => {
  const { page, complaints, close } = await browser.open();
  const files = ['model.safetensors', 'config.json'].map((name) => join(sampleFolder, name));
  await openFile(page, files, 'model.safetensors');
  await show(page, 'Calibrate and measure');
  await page.getByLabel('Text to measure on', { exact: true }).fill(text('measure'));
  await page.getByRole('button', { name: 'Measure the model' }).click();
  await page.getByRole('alert').getByText('The model has no tokenizer.json').waitFor();
  assert.deepEqual(complaints, []);
  await close();
});
