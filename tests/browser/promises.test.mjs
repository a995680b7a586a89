// What holds in every state of the page: accessible (axe-core), small, quick, working offline, and never stuck: no long
// task during a run, and a file of 5 GiB that is cancelled in the middle.
import assert from 'node:assert/strict';
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { root } from '../setup/command.mjs';
import {
  browserOfTests,
  chooseScheme,
  openConfig,
  openFile,
  openSample,
  picture,
  quantize,
  quantizeButton,
  ready,
  show,
  someWeights,
  storedRuns,
  unfold,
  writeConfig,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

const axe = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

/** Everything that axe finds. */
async function issues(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

for (const [name, options] of [
  ['light', {}],
  ['dark, phone', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
]) {
  test(`axe-core finds nothing in any state: ${name}`, async () => {
    const { page, complaints, close } = await browser.open(options);
    const check = async (state) => assert.deepEqual(await issues(page), [], state);
    await check('start');
    await page.getByLabel('Address of a model').fill('org/model');
    await check('an address');
    await page
      .context()
      .route('https://huggingface.co/**', (route) =>
        route.fulfill({ status: 401, headers: { 'access-control-allow-origin': '*' } }),
      );
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByLabel('Hugging Face token').waitFor();
    await check('a token');
    complaints.length = 0; // of that answer
    await openSample(page);
    await check('choosing');
    await page.locator('.curve-dot').nth(3).waitFor({ timeout: 120_000 });
    await check('the curve');
    await page.getByRole('button', { name: /^All \d+ schemes/ }).click();
    await check('all schemes');
    await show(page, 'Tensors');
    await check('tensors');
    await unfold(page);
    await page.getByRole('checkbox', { name: 'Select model.layers.0.mlp.down_proj.weight' }).check();
    await check('a row marked');
    await openConfig(page);
    await check('config');
    await writeConfig(page, { dtype: 3 });
    await page.getByRole('alert').waitFor();
    await check('a conflict');
    await page.getByRole('button', { name: 'Back to int4_wo_128' }).click();
    await quantize(page);
    await page.locator('.worst .link').first().waitFor({ timeout: 30_000 });
    await check('result');
    await page.locator('.map-layer').first().click();
    await page.locator('.map-detail .channel-strip').waitFor();
    await check('a layer');
    await unfold(page);
    await page.getByRole('button', { name: 'model.layers.1.mlp.down_proj.weight', exact: true }).click();
    await page.locator('.row-detail .channel-strip').waitFor();
    await check('a row open');
    await page.getByRole('button', { name: 'Tree' }).click();
    await check('tree');
    for (const view of ['Improve', 'Calibrate and measure', 'Compare runs', 'Report and code']) {
      await show(page, view);
      if (view === 'Improve') await page.getByText('Sizes are those of the whole output').waitFor();
      await check(view);
    }
    await page.locator('#files').setInputFiles({ name: 'x.bin', mimeType: '', buffer: Buffer.from('x') });
    await page.getByRole('alert').waitFor();
    await check('error');
    assert.deepEqual(complaints, []);
    await close();
  });
}

test('JavaScript stays within 60 kB gzip at first and 220 kB without the editor and ONNX Runtime, and the page is drawn and there within a second', async () => {
  const folder = join(root, 'dist/demo/assets');
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js') && !/^(json-editor|ort-)/.test(name));
  const sizes = scripts.map((name) => [name, gzipSync(readFileSync(join(folder, name))).length]);
  const sum = sizes.reduce((total, [, bytes]) => total + bytes, 0);
  const page = readFileSync(join(root, 'dist/demo/index.html'), 'utf8');
  const first = sizes.filter(([name]) => page.includes(name)).reduce((total, [, bytes]) => total + bytes, 0);
  process.stdout.write(`# page JavaScript: ${first} bytes gzip at first, ${sum} with all but the editor\n`);
  assert.ok(first > 0 && first <= 60_000, JSON.stringify(sizes));
  assert.ok(sum <= 220_000, JSON.stringify(sizes));
  const [paints, times] = [[], []];
  for (let i = 0; i < 3; ++i) {
    const { page, close } = await browser.open();
    // Something was drawn, and something with content.
    await page.waitForFunction(() => performance.getEntriesByType('paint').length === 2);
    paints.push(
      await page.evaluate(() => Math.max(...performance.getEntriesByType('paint').map((paint) => paint.startTime))),
    );
    times.push(
      await page.evaluate(() => {
        const [{ domContentLoadedEventEnd }] = performance.getEntriesByType('navigation');
        return Math.max(domContentLoadedEventEnd, ...performance.getEntriesByName('ready').map((m) => m.startTime));
      }),
    );
    await close();
  }
  // The promise is half a second on a machine that does nothing else.
  process.stdout.write(`# first paint with content after ${paints.map((ms) => Math.round(ms)).join(', ')} ms\n`);
  assert.ok(Math.min(...paints) < 1000, `${paints} ms`);
  process.stdout.write(`# interactive after ${times.map((ms) => Math.round(ms)).join(', ')} ms\n`);
  assert.ok(Math.min(...times) < 1000, `${times} ms`);
});

test('a link to the page comes with a picture of the size that is announced', () => {
  const page = readFileSync(join(root, 'dist/demo/index.html'), 'utf8');
  const of = (name) => new RegExp(`<meta property="og:${name}" content="([^"]+)"`).exec(page)?.[1];
  assert.match(page, /<meta name="theme-color"/);
  const picture = readFileSync(join(root, 'dist/demo', of('image')));
  assert.equal(picture.toString('latin1', 1, 4), 'PNG');
  assert.deepEqual(
    [picture.readUInt32BE(16), picture.readUInt32BE(20)],
    ['image:width', 'image:height'].map(of).map(Number),
  );
});

test('after the first visit, the page works without a network', async () => {
  const { page, close } = await browser.open();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await openSample(page);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.reload();
  await openSample(page);
  await page.context().setOffline(true);
  await page.reload();
  await ready(page);
  await openSample(page);
  await openConfig(page);
  await quantize(page);
  await show(page, 'Tensors');
  await unfold(page);
  await page.getByRole('button', { name: 'model.layers.1.mlp.down_proj.weight', exact: true }).click();
  await page.locator('.channel-strip').waitFor();
  await close();
});

test('no task of the main thread takes longer than 50 ms during a run', async () => {
  const path = join(browser.folder, 'wide.safetensors');
  const data = someWeights(2 ** 20);
  const tensors = Array.from({ length: 24 }, (_, i) => ({
    name: `layers.${i}.proj.weight`,
    shape: [2048, 2048],
    data,
  }));
  await writeSafetensors(path, tensors);
  const runs = [];
  // The machine may be busy with other things: of three runs one must be without.
  for (let i = 0; i < 3 && !runs.includes(0); ++i) {
    const { page, complaints, close } = await browser.open();
    await openFile(page, path, 'wide.safetensors');
    await chooseScheme(page, 'int4_wo_128');
    await page.waitForTimeout(1500); // sizes of every preset
    await page.evaluate(() => {
      window.longTasks = [];
      new PerformanceObserver((list) =>
        window.longTasks.push(...list.getEntries().map(({ duration }) => duration)),
      ).observe({
        type: 'longtask',
      });
    });
    await quantize(page);
    const found = await page.evaluate(() => window.longTasks);
    process.stdout.write(`# long tasks of a run: ${found.map((ms) => `${Math.round(ms)} ms`).join(', ') || 'none'}\n`);
    runs.push(found.length);
    assert.deepEqual(complaints, []);
    await close();
  }
  assert.ok(runs.includes(0));
});

test('a file of 5 GiB opens at once, and its run is cancelled in the middle', async () => {
  const path = join(browser.folder, 'sparse.safetensors');
  const count = 40;
  const bytes = 2 ** 27;
  const header = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `layers.${i}.proj.weight`,
      { dtype: 'F32', shape: [4096, 8192], data_offsets: [i * bytes, (i + 1) * bytes] },
    ]),
  );
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const file = openSync(path, 'w');
  writeSync(file, length);
  writeSync(file, text);
  ftruncateSync(file, 8 + text.length + count * bytes);
  closeSync(file);
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'sparse.safetensors');
  await show(page, 'Tensors');
  await page.locator('.tensors tbody').getByText(`×${count}`).waitFor();
  await page.getByRole('radio', { name: 'As downloads' }).check();
  await quantizeButton(page).click();
  await page.waitForFunction(
    () => {
      const progress = document.querySelector('progress');
      return progress && progress.value / progress.max > 0.1;
    },
    null,
    { timeout: 120_000 },
  );
  await picture(page, 'light-large');
  const cancelled = Date.now();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Cancelled. Nothing was saved.', { exact: true }).first().waitFor();
  assert.ok(Date.now() - cancelled < 10_000);
  assert.deepEqual(await storedRuns(page), []);
  assert.ok(await quantizeButton(page).isEnabled());
  assert.deepEqual(complaints, []);
  await close();
});
