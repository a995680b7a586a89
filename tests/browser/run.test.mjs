// Runs in the page, from opened file to downloaded bytes.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import {
  browserOfTests,
  chooseScheme,
  chosen,
  download,
  openFile,
  openSample,
  picture,
  quantize,
  quantizeButton,
  ready,
  sampleFolder,
  show,
  someWeights,
  storedRuns,
  unfold,
  writeSafetensors,
} from './browser.mjs';

const MiB = 2 ** 20;
const browser = await browserOfTests();

/** What Node writes for the sample: the file, and the block for config.json. */
async function quantizedInNode(preset, format) {
  const quantizer = await createQuantizer({ threads: 0 });
  try {
    const model = await quantizer.open(join(sampleFolder, 'model.safetensors'));
    const target = join(mkdtempSync(join(browser.folder, 'node-')), 'model.safetensors');
    const report = await quantizer.quantizeModel(model, preset, { target, format });
    const { quantizationConfig } = await quantizer.plan(model, preset, { format });
    await model.close();
    return { bytes: readFileSync(target), report, quantizationConfig };
  } finally {
    await quantizer[Symbol.asyncDispose]();
  }
}

test('the sample quantized in the page has the same bytes and errors as in Node', async () => {
  const expected = await quantizedInNode('int4_wo_128', 'compressed-tensors');
  const { page, complaints, close } = await browser.open();
  await picture(page, 'light-1-before');
  await openSample(page);
  assert.equal(await chosen(page), 'int4_wo_128 compressed-tensors');
  await quantize(page);
  await picture(page, 'light-3-after');

  const saved = readFileSync(await download(page, 'model.safetensors'));
  assert.equal(Buffer.compare(saved, expected.bytes), 0, `${saved.length} bytes, Node wrote ${expected.bytes.length}`);

  const config = JSON.parse(readFileSync(await download(page, 'config.json'), 'utf8'));
  const original = JSON.parse(readFileSync(join(sampleFolder, 'config.json'), 'utf8'));
  assert.deepEqual(config, { ...original, quantization_config: expected.quantizationConfig });

  const measured = expected.report.tensors.filter(({ error }) => error !== null);
  assert.ok(measured.length > 0);
  await show(page, 'Tensors');
  await unfold(page);
  for (const { name, error } of measured) {
    const row = page.locator('.tensors tbody tr').filter({ has: page.getByRole('button', { name, exact: true }) });
    const percent = (await row.locator('.cell-error').textContent()).match(/^([\d.]+) % (good|visible|bad)/);
    assert.ok(Math.abs(Number(percent[1]) - 100 * 10 ** (-error.sqnrDb / 20)) < 0.51, `${name}: ${percent[0]}`);
  }
  assert.deepEqual(complaints, []);
  await close();
});

for (const [preset, format, runtime] of [
  ['int8', 'quark', /^AMD Quark/],
  ['fp8', 'compressed-tensors', /^transformers, vLLM/],
  ['uint4_wo_64', 'fake-quantized', /^Only to see the cost/],
]) {
  test(`${preset} as ${format} has the same bytes as in Node`, async () => {
    const expected = await quantizedInNode(preset, format);
    const { page, complaints, close } = await browser.open();
    await openSample(page);
    await page.getByRole('radio', { name: runtime }).check();
    await chooseScheme(page, preset);
    assert.equal(await chosen(page), `${preset} ${format}`);
    await quantize(page);
    const saved = readFileSync(await download(page, 'model.safetensors'));
    assert.equal(Buffer.compare(saved, expected.bytes), 0);
    assert.deepEqual(complaints, []);
    await close();
  });
}

test('a folder is written directly when it is empty, refused when it is not, and may be declined', async () => {
  const { page, complaints, close } = await browser.open();
  // No picker can be operated from here: a folder of browser storage answers in its place.
  await page.evaluate(() => {
    window.answers = ['declined', 'picked', 'picked'];
    window.showDirectoryPicker = async () => {
      const answer = window.answers.shift();
      if (answer === 'declined') throw new DOMException('declined', 'AbortError');
      return await (await navigator.storage.getDirectory()).getDirectoryHandle(answer, { create: true });
    };
  });
  await openSample(page);
  await page.getByRole('radio', { name: 'Straight into a folder' }).check();
  const button = quantizeButton(page);
  await button.click();
  await page.waitForFunction(() => window.answers.length === 2);
  assert.ok(await button.isEnabled());
  assert.equal(await page.locator('.saved, .run-progress, [role=alert]').count(), 0);

  await button.click();
  await page.getByRole('heading', { name: 'Saved in picked' }).waitFor();
  const sizes = await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const found = {};
    for await (const [name, handle] of folder.entries()) found[name] = (await handle.getFile()).size;
    return found;
  });
  const { bytes } = await quantizedInNode('int4_wo_128', 'compressed-tensors');
  assert.deepEqual(Object.keys(sizes).sort(), [
    'config.json',
    'model.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
  ]);
  assert.equal(sizes['model.safetensors'], bytes.length);
  assert.deepEqual(await storedRuns(page), []);

  await page.getByRole('button', { name: 'Try another size' }).click();
  await button.click();
  await page.getByRole('alert').getByText('The folder picked contains').waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a GGUF is written straight into a file; declining leaves nothing behind', async () => {
  const { page, complaints, close } = await browser.open();
  // A file of browser storage answers in place of the picker, made when it is picked, as real ones are.
  await page.evaluate(() => {
    window.answers = ['declined', 'picked.gguf'];
    window.showSaveFilePicker = async ({ suggestedName }) => {
      window.suggested = suggestedName;
      const answer = window.answers.shift();
      if (answer === 'declined') throw new DOMException('declined', 'AbortError');
      return await (await navigator.storage.getDirectory()).getFileHandle(answer, { create: true });
    };
  });
  await openSample(page, 'q4_k_m');
  await page.getByRole('radio', { name: 'Straight into a file' }).check();
  const button = quantizeButton(page);
  await button.click();
  await page.waitForFunction(() => window.answers.length === 1);
  assert.ok(await button.isEnabled());
  assert.equal(await page.locator('.saved, .run-progress, [role=alert]').count(), 0);
  assert.match(await page.evaluate(() => window.suggested), /\.gguf$/);

  await button.click();
  await page.getByRole('heading', { name: 'Saved as picked.gguf' }).waitFor();
  const digest = await page.evaluate(async () => {
    const handle = await (await navigator.storage.getDirectory()).getFileHandle('picked.gguf');
    const found = await crypto.subtle.digest('SHA-256', await (await handle.getFile()).arrayBuffer());
    return [...new Uint8Array(found)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  });
  assert.deepEqual(await storedRuns(page), []);
  await picture(page, 'light-file');
  await page.getByRole('button', { name: 'Try another size' }).click();
  await page.getByRole('radio', { name: 'As downloads' }).check();
  await button.click();
  await page.getByText(/^Ready to save/).waitFor();
  const saved = readFileSync(await download(page, await page.evaluate(() => window.suggested)));
  assert.equal(digest, createHash('sha256').update(saved).digest('hex'));
  assert.deepEqual(complaints, []);
  await close();
});

test('shards chosen with index and config give the same files as their folder in Node', async () => {
  const folder = join(sampleFolder, 'bf16');
  const expected = join(browser.folder, 'bf16-int4');
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(folder);
  await quantizer.quantizeModel(model, 'int4_wo_128', { target: expected });
  await model.close();
  await quantizer[Symbol.asyncDispose]();

  const files = readdirSync(folder).map((name) => join(folder, name));
  const shards = files.filter((name) => name.endsWith('.safetensors'));
  assert.ok(shards.length > 1);
  const { page, complaints, close } = await browser.open();
  await openFile(page, files, `${shards.length} shards`);
  assert.match(await chosen(page), / compressed-tensors$/); // shards are for servers
  await chooseScheme(page, 'int4_wo_128');
  await quantize(page);
  const names = readdirSync(expected);
  assert.equal(await page.locator('.saved a').count(), names.length);
  for (const name of names) {
    const saved = readFileSync(await download(page, name));
    assert.equal(Buffer.compare(saved, readFileSync(join(expected, name))), 0, name);
  }
  assert.deepEqual(complaints, []);
  await close();
});

test('a file without config.json runs, and another preset shows its plan again', async () => {
  const path = join(browser.folder, 'one.safetensors');
  await writeSafetensors(path, [
    { name: 'first.weight', shape: [256, 512], data: someWeights(512) },
    { name: 'first.bias', shape: [256], data: someWeights(256) },
  ]);
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'one.safetensors');
  await chooseScheme(page, 'int4_wo_128');
  await quantize(page);
  await show(page, 'Tensors');
  const error = page.locator('.cell-error').first();
  assert.match(await error.textContent(), /^[\d.]+ % visible/);
  const config = JSON.parse(readFileSync(await download(page, 'config.json'), 'utf8'));
  assert.deepEqual(Object.keys(config), ['quantization_config']);
  await chooseScheme(page, 'int8');
  await show(page, 'Tensors');
  assert.match(await error.textContent(), /^was [\d.]+ %$/); // of the last run, which quantized it differently
  assert.deepEqual(complaints, []);
  await close();
});

test('cancelling midway leaves the page ready and no files behind', async () => {
  const path = join(browser.folder, 'large.safetensors');
  const data = someWeights(4 * MiB);
  const tensors = Array.from({ length: 16 }, (_, layer) => {
    return { name: `layers.${layer}.proj.weight`, shape: [2048, 2048], data };
  });
  await writeSafetensors(path, tensors);
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'large.safetensors');
  // Clicked from inside the page, as soon as the first bytes are done: a click from here could come after the end.
  const cancelledAt = page.evaluate(async () => {
    for (;;) {
      const progress = document.querySelector('.run-progress progress');
      if (progress && progress.value > 0) {
        [...document.querySelectorAll('button')].find((button) => button.textContent === 'Cancel').click();
        return progress.value / progress.max;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  await quantizeButton(page).click();
  assert.ok((await cancelledAt) < 1);
  await page.getByText('Cancelled. Nothing was saved.', { exact: true }).first().waitFor();
  assert.deepEqual(await storedRuns(page), []);
  assert.equal(await page.getByRole('link').count(), 0);

  const during = page.waitForFunction(() => document.querySelector('progress')?.value > 0); // looks before it begins
  const finished = quantize(page);
  await during;
  await picture(page, 'light-2-during');
  await finished;
  assert.equal((await storedRuns(page)).length, 1);
  assert.deepEqual(complaints, []);
  await close();
});

test('files of an earlier visit are removed at the start, those of another open tab are not', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  const [run] = await storedRuns(page);
  const other = await page.context().newPage();
  await other.goto(page.url());
  await ready(other);
  assert.deepEqual(await storedRuns(other), [run]);
  await page.close();
  await other.reload();
  await ready(other);
  await other.waitForFunction(async () => {
    const runs = await (await navigator.storage.getDirectory()).getDirectoryHandle('wasmquant-runs');
    return (await runs.keys().next()).done;
  });
  assert.deepEqual(complaints, []);
  await close();
});
