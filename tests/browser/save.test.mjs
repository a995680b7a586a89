// Saving all files of a run as one archive, through browser storage and straight into a picked file.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../setup/command.mjs';
import {
  browserOfTests,
  chooseRuntime,
  chooseScheme,
  download,
  openSample,
  picture,
  quantize,
  storedRuns,
} from './browser.mjs';

const browser = await browserOfTests();

/** Files of a zip archive that stores them as they are, by its central directory (APPNOTE 4.3.12). */
function filesOfZip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  const files = new Map();
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; --left) {
    assert.equal(view.getUint32(at, true), 0x02014b50);
    assert.equal(view.getUint16(at + 10, true), 0);
    const size = view.getUint32(at + 20, true);
    const [nameBytes, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const local = view.getUint32(at + 42, true);
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    files.set(bytes.toString('utf8', at + 46, at + 46 + nameBytes), bytes.subarray(begin, begin + size));
    at += 46 + nameBytes + extra + comment;
  }
  return files;
}

async function checkZip(page, bytes) {
  const files = filesOfZip(bytes);
  const names = await page.locator('.saved a').evaluateAll((links) => links.map((link) => link.download));
  assert.deepEqual([...files.keys()].sort(), names.sort());
  for (const name of names)
    assert.equal(Buffer.compare(files.get(name), readFileSync(await download(page, name))), 0, name);
}

test('one archive through browser storage', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: /^Save [\d.]+ MB/ }).click(),
  ]);
  assert.equal(saved.suggestedFilename(), 'tiny-llama-sample-quantized.zip');
  await checkZip(page, readFileSync(await saved.path()));
  assert.equal((await storedRuns(page)).length, 2);
  await chooseScheme(page, 'int8');
  await quantize(page);
  await page.waitForFunction(async () => {
    const runs = await (await navigator.storage.getDirectory()).getDirectoryHandle('wasmquant-runs');
    const names = [];
    for await (const name of runs.keys()) names.push(name);
    return names.length === 1;
  });
  assert.deepEqual(complaints, []);
  await close();
});

test('one archive straight into a picked file when browser storage is full; the picker may be declined', async () => {
  const { page, complaints, close } = await browser.open();
  // No picker can be operated from here: a file of browser storage answers in its place.
  await page.evaluate(() => {
    window.answers = ['declined', 'picked.zip'];
    window.showSaveFilePicker = async () => {
      const answer = window.answers.shift();
      if (answer === 'declined') throw new DOMException('declined', 'AbortError');
      return await (await navigator.storage.getDirectory()).getFileHandle(answer, { create: true });
    };
  });
  await openSample(page);
  await quantize(page);
  await page.evaluate(() => {
    navigator.storage.estimate = async () => ({ quota: 1_000_000, usage: 0 });
  });
  const button = page.getByRole('button', { name: /^Save [\d.]+ MB/ });
  await button.click();
  await page.waitForFunction(() => window.answers.length === 1);
  assert.equal(await page.getByRole('alert').count(), 0);
  await button.click();
  await page.evaluate(async () => {
    const folder = await navigator.storage.getDirectory();
    for (let size = 0; size < 1_000_000; ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const handle = await folder.getFileHandle('picked.zip').catch(() => null);
      size = (await handle?.getFile())?.size ?? 0;
    }
  });
  const text = await page.evaluate(async () => {
    const folder = await navigator.storage.getDirectory();
    const bytes = new Uint8Array(await (await (await folder.getFileHandle('picked.zip')).getFile()).arrayBuffer());
    let binary = '';
    for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return btoa(binary);
  });
  const bytes = Buffer.from(text, 'base64');
  await checkZip(page, bytes);
  assert.deepEqual(complaints, []);
  await close();
});

test('an encoder keeps its module folders, and its curve compares embeddings', async () => {
  const folder = join(browser.folder, 'encoder');
  cpSync(join(root, 'tests/files/forward/bert'), folder, { recursive: true });
  mkdirSync(join(folder, '1_Pooling'));
  writeFileSync(join(folder, '1_Pooling/config.json'), JSON.stringify({ pooling_mode_cls_token: true }));
  const modules = [
    { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
    { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
  ];
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(modules));
  // A token is a letter; all else is an a.
  const vocab = Object.fromEntries(Array.from({ length: 26 }, (_, i) => [String.fromCharCode(97 + i), i]));
  const letters = { type: 'Replace', pattern: { Regex: '[^a-z]' }, content: 'a' };
  const tokenizer = {
    version: '1.0',
    added_tokens: [],
    normalizer: { type: 'Sequence', normalizers: [{ type: 'Lowercase' }, letters] },
    ...{ pre_tokenizer: null, post_processor: null, decoder: null },
    model: { type: 'BPE', vocab, merges: [] },
  };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), '{}');
  const { page, complaints, close } = await browser.open();
  await page.locator('#folder').setInputFiles(folder);
  await page.locator('.model-facts').waitFor();
  await chooseRuntime(page, /^transformers, vLLM/);
  await page.getByText('1 − cosine of the embeddings (lower is better)').first().waitFor();
  await page
    .getByText(/embeddings [\d.]+ % apart/)
    .first()
    .waitFor();
  await chooseScheme(page, 'int8');
  await picture(page, 'light-encoder');
  await quantize(page);
  const started = page.waitForEvent('download');
  await page.locator('.result-head').getByText(/^Save/).click();
  const bytes = readFileSync(await (await started).path());
  assert.match(String(filesOfZip(bytes).get('1_Pooling/config.json')), /pooling_mode_cls_token/);
  assert.deepEqual(complaints, []);
  await close();
});
