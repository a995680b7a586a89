// Opening models: by address, with their tensors as a tree, and what is said about files that are none.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { npyFile } from '../node/sources/npy_file.mjs';
import {
  browserOfTests,
  chooseScheme,
  openFile,
  openSample,
  picture,
  quantize,
  sampleFolder,
  show,
  someWeights,
  unfold,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

test('a URL is opened by range requests and quantized', async () => {
  const { page, complaints, close } = await browser.open();
  const ranges = [];
  page.on('request', (request) => {
    if (request.url().endsWith('sample/model.safetensors')) ranges.push(request.headers().range ?? 'whole');
  });
  const address = page.getByLabel('Address of a model');
  await address.fill('sample/model.safetensors');
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.getByText('model.safetensors', { exact: true }).waitFor();
  assert.ok(ranges.length > 0 && !ranges.includes('whole'));
  const read = ranges.map((range) => /(\d+)-(\d+)/.exec(range)).reduce((sum, [, a, b]) => sum + (b - a + 1), 0);
  assert.ok(read < 1_000_000, `${read} bytes to show the tensors`);
  assert.match(await page.locator('.model-facts').textContent(), /^Llama, 2\.57 M parameters/);
  // What costs a download of the whole model is not begun without being asked for.
  await page.getByRole('button', { name: 'Measure what each size costs' }).waitFor();
  await page.getByRole('button', { name: 'change', exact: true }).click();
  await address.fill('sample/config.json');
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.getByRole('alert').getByText('must end in .safetensors').waitFor();
  await picture(page, 'light-address');
  assert.deepEqual(complaints, []);
  await close();
});

test('a model on another origin opens, although the browser hides why its other files are missing', async () => {
  const path = join(browser.folder, 'far.safetensors');
  await writeSafetensors(path, [{ name: 'proj.weight', shape: [64, 64], data: someWeights(64 * 64) }]);
  const { page, close } = await browser.open();
  const asked = [];
  await page.route('https://models.example/**', (route) => {
    const { pathname } = new URL(route.request().url());
    asked.push(pathname);
    return pathname === '/far.safetensors' ? route.fulfill({ path }) : route.abort();
  });
  await page.getByLabel('Address of a model').fill('https://models.example/far.safetensors');
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.getByText('far.safetensors', { exact: true }).waitFor();
  assert.equal(asked.filter((name) => name === '/config.json').length, 2);
  await close();
});

test('a chosen folder opens under its own name, without weights of its subfolders', async () => {
  const folder = join(browser.folder, 'my-model');
  cpSync(join(sampleFolder, 'bf16'), folder, { recursive: true });
  mkdirSync(join(folder, 'original'));
  cpSync(join(sampleFolder, 'model.safetensors'), join(folder, 'original/model.safetensors'));
  const { page, complaints, close } = await browser.open();
  await page.locator('#folder').setInputFiles(folder);
  await page.locator('.model-title').getByText('my-model', { exact: true }).waitFor();
  assert.match(
    await page.locator('.model-facts').textContent(),
    /^Llama, 2\.57 M parameters, bfloat16, 5\.1\d MB, 39 tensors/,
  );
  assert.deepEqual(complaints, []);
  await close();
});

test('a NumPy array is quantized to safetensors', async () => {
  const { page, complaints, close } = await browser.open();
  const path = join(browser.folder, 'scores.npy');
  writeFileSync(path, npyFile('<f4', [64, 128], someWeights(64 * 128)));
  await openFile(page, path, 'scores.npy');
  await chooseScheme(page, 'int4_wo_128');
  await show(page, 'Tensors');
  await page.getByText('scores.weight', { exact: true }).waitFor();
  await quantize(page);
  await page.locator('.saved a[download="model.safetensors"]').waitFor({ state: 'attached' });
  assert.deepEqual(complaints, []);
  await close();
});

test('tensors are shown as a tree and can be searched', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await show(page, 'Tensors');
  await page.getByRole('button', { name: 'Tree' }).click();
  const tree = page.locator('.tree');
  await tree.getByText('layers', { exact: true }).first().waitFor();
  await picture(page, 'light-tree');
  await page.getByRole('searchbox').fill('q_proj');
  const leaves = tree.locator('.tree-leaf');
  await leaves.nth(3).waitFor();
  assert.equal(await leaves.count(), 4);
  assert.match(await leaves.first().textContent(), /Linear, 256 × 256, F32 → int4.*262 kB → 34\.8 kB/);
  await page.getByRole('button', { name: 'Tree' }).click();
  const rows = page.locator('.tensors tbody tr');
  assert.equal(await rows.count(), 1);
  assert.match(
    await rows.textContent(),
    /model\.layers\.\{0\.\.3\}\.self_attn\.q_proj\.weight×4 Linear.*1\.05 MB → 139 kB/,
  );
  await unfold(page);
  assert.equal(await rows.count(), 5);
  assert.deepEqual(complaints, []);
  await close();
});

test('files that are not weights are explained', async () => {
  const { page, complaints, close } = await browser.open();
  const file = (name, content) => {
    const path = join(browser.folder, name);
    writeFileSync(path, content);
    return path;
  };
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n';
  const header = readFileSync(join(sampleFolder, 'model.safetensors')).subarray(0, 3000);
  for (const [path, said] of [
    [file('pytorch_model.bin', Buffer.from([0x80, 2, 0x7d])), /a Python pickle, which can run code/],
    [file('weights.h5', Buffer.from('\x89HDF\r\n\x1a\n', 'latin1')), /Export the model to ONNX/],
    [file('pointer.safetensors', pointer), /Git LFS pointer.*The file has 5 bytes.*git lfs pull/],
    [file('page.safetensors', '<!DOCTYPE html><title>Sign in</title>'), /a web page: the download/],
    [file('empty.gguf', ''), /has 0 bytes: its download did not finish/],
    [file('half.safetensors', header), /bytes are missing|file-truncated/],
    [file('random.onnx', Buffer.alloc(4096, 7)), /random\.onnx could not be opened/],
    [file('config.json', '{"model_type": "llama"}'), /the config\.json of a model.*choose its weights too/],
  ]) {
    await page.locator('#files').setInputFiles(path);
    await page.getByRole('alert').getByText(said).first().waitFor();
  }
  await openSample(page);
  assert.equal(await page.getByRole('alert').count(), 0);
  await quantize(page);
  // A file that cannot be opened leaves what was there: model, run and files.
  await page.locator('#files').setInputFiles(join(browser.folder, 'page.safetensors'));
  await page.getByRole('alert').waitFor();
  assert.ok(await page.getByText(/^Ready to save/).isVisible());
  assert.deepEqual(complaints, []);
  await close();
});

test('a gated model on the hub asks for a token and keeps it only in memory', async () => {
  const { page, close } = await browser.open();
  const commit = '0123456789abcdef0123456789abcdef01234567';
  const token = 'hf_secretOfThisTest';
  const names = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
  const files = new Map(names.map((name) => [name, readFileSync(join(sampleFolder, name))]));
  const seen = [];
  await page.context().route('https://huggingface.co/**', (route) => {
    const request = route.request();
    const { pathname } = new URL(request.url());
    const headers = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };
    if (request.headers().authorization !== `Bearer ${token}`) return route.fulfill({ status: 401, headers });
    seen.push(pathname);
    if (pathname === `/api/models/org/gated/revision/main`) {
      const siblings = names.map((rfilename) => ({ rfilename, size: files.get(rfilename).length }));
      return route.fulfill({ headers, json: { sha: commit, siblings } });
    }
    const bytes = files.get(pathname.split('/').at(-1));
    if (!bytes) return route.fulfill({ status: 404, headers });
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(request.headers().range ?? '') ?? [];
    if (first === undefined) return route.fulfill({ headers, body: bytes });
    const end = Math.min(Number(last) + 1, bytes.length);
    const range = { 'content-range': `bytes ${first}-${end - 1}/${bytes.length}`, etag: '"1"' };
    return route.fulfill({ status: 206, headers: { ...headers, ...range }, body: bytes.subarray(Number(first), end) });
  });
  const open = page.getByRole('button', { name: 'Open', exact: true });
  await page.getByLabel('Address of a model').fill('org/gated');
  assert.equal(await page.getByLabel('Hugging Face token').count(), 0);
  await open.click();
  await page.getByRole('alert').getByText('in the field below').waitFor();
  await page.getByLabel('Hugging Face token').fill('hf_wrong');
  await open.click();
  await page.getByRole('alert').getByText('the hub refuses the token (401)').waitFor();
  await picture(page, 'light-token');
  await page.getByLabel('Hugging Face token').fill(token);
  await open.click();
  await page.getByText('gated', { exact: true }).waitFor();
  assert.match(await page.locator('.model-facts').textContent(), /^Llama, 2\.57 M parameters/);
  await quantize(page);
  await show(page, 'Report and code');
  assert.ok(seen.includes(`/org/gated/resolve/${commit}/tokenizer.json`), seen.join(' '));
  const kept = await page.evaluate(async () => {
    const cached = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()));
    const urls = cached.flat().map(({ url }) => url);
    const databases = (await indexedDB.databases()).map(({ name }) => name);
    return [
      ...urls,
      ...databases,
      JSON.stringify({ ...localStorage }),
      JSON.stringify({ ...sessionStorage }),
      location.href,
      document.documentElement.outerHTML,
    ].join('\n');
  });
  assert.ok(!kept.includes(token), 'the token was written somewhere');
  await close();
});
