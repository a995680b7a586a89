// The examples of web/examples, run against the packed package: each must do what it says it does. Pages run in headless
// Chromium from a plain server, the Vite application from its build.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chromium as playwright } from 'playwright-core';
import { bundler } from '../bundlers/tools.mjs';
import { install } from '../package/packed.mjs';
import { chromium } from '../setup/chromium.mjs';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';

const examples = join(root, 'web/examples');
const sample = join(root, 'tests/files/tiny-llama');
const weights = join(sample, 'model.safetensors');

/** A safetensors file must begin with the length of its header, and that with a brace. */
function assertSafetensors(bytes) {
  const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))).toString());
  assert.ok(Object.keys(header).length > 10);
}

/** A package of another folder in the application's, with what it depends on there. */
function link(packages, app, name) {
  const place = join(app, 'node_modules', name);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(join(packages, name), place);
}

async function inPage(folder, test) {
  const server = await serve(folder);
  const browser = await playwright.launch({ executablePath: chromium(), args: ['--headless', '--no-sandbox'] });
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(server.url);
    await test(page);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
    await server.close();
  }
}

async function saved(page) {
  await page
    .locator('#save')
    .waitFor({ timeout: 60_000 })
    .catch(async (error) => assert.fail(`${await page.locator('#status').textContent()}\n${error.message}`));
  const started = page.waitForEvent('download');
  await page.locator('#save').click();
  return readFileSync(await (await started).path());
}

const rows = {
  'node_script.mjs'(app) {
    cpSync(join(examples, 'node_script.mjs'), join(app, 'node_script.mjs'));
    const args = ['node_script.mjs', sample, 'out', 'int8'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: app, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /bits per weight\n(\d+\.\d dB {2}model\.layers.*\n){5}/);
    assertSafetensors(readFileSync(join(app, 'out/model.safetensors')));
  },
  async page(app) {
    cpSync(join(examples, 'page'), app, { recursive: true });
    await inPage(app, async (page) => {
      await page.locator('#preset option[value=int4_wo_128]').waitFor({ state: 'attached' });
      await page.locator('#file').setInputFiles(weights);
      assertSafetensors(await saved(page));
      await page.locator('#file').setInputFiles({ name: 'bad.safetensors', mimeType: '', buffer: Buffer.alloc(40, 1) });
      await page.getByText(/as no known format does/).waitFor();
    });
  },
  async url_to_file(app) {
    cpSync(join(examples, 'url_to_file'), app, { recursive: true });
    cpSync(weights, join(app, 'model.safetensors'));
    await inPage(app, async (page) => {
      await page.getByRole('button', { name: 'Quantize' }).click();
      assertSafetensors(await saved(page));
    });
  },
  async 'onnx_for_transformers_js.mjs'(app) {
    const { packages } = await import('../interop/onnx/peers.mjs');
    link(packages, app, '@huggingface/transformers');
    cpSync(join(examples, 'onnx_for_transformers_js.mjs'), join(app, 'onnx_for_transformers_js.mjs'));
    cpSync(sample, join(app, 'my-model'), { recursive: true });
    const text = 'In the beginning';
    const args = ['onnx_for_transformers_js.mjs', 'my-model', 'my-model-onnx', text];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: app, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    assert.ok(readFileSync(join(app, 'my-model-onnx/onnx/model_q4.onnx')).length > 0);
    const [sizes, ...written] = stdout.split('\n');
    assert.match(sizes, /bits per weight$/);
    assert.ok(written.join('\n').startsWith(text), stdout);
  },
  async gguf_for_wllama(app) {
    const { wllama } = await import('../interop/wllama_peer.mjs');
    cpSync(join(examples, 'gguf_for_wllama'), app, { recursive: true });
    cpSync(wllama, join(app, 'node_modules/@wllama/wllama'), { recursive: true });
    await inPage(app, async (page) => {
      const names = ['model.safetensors', 'config.json', 'tokenizer.json', 'tokenizer_config.json'];
      await page.locator('#files').setInputFiles(names.map((name) => join(sample, name)));
      const written = page.locator('#text');
      await page
        .waitForFunction(() => document.querySelector('#text').textContent !== '', null, { timeout: 120_000 })
        .catch(async (error) => assert.fail(`${await page.locator('#status').textContent()}\n${error.message}`));
      assert.match(await written.textContent(), /^And the [a-z ,.]{8}/);
      await page
        .locator('#files')
        .setInputFiles({ name: 'bad.safetensors', mimeType: '', buffer: Buffer.alloc(40, 1) });
      await page.getByText(/as no known format does/).waitFor();
    });
  },
  async vite_app(app) {
    cpSync(join(examples, 'vite_app'), app, { recursive: true });
    const { status, stdout, stderr } = spawnSync(bundler('vite'), ['build'], { cwd: app, encoding: 'utf8' });
    assert.equal(status, 0, `${stdout}${stderr}`);
    await inPage(join(app, 'dist'), async (page) => {
      await page.locator('#file').setInputFiles(weights);
      await page.getByText(/bits per weight/).waitFor({ timeout: 60_000 });
      assert.ok((await page.locator('li').count()) > 10);
    });
  },
};

/** Runs every example whose name contains `only`; `report(name, error or null)` for each. */
export async function runExamples(packed, only, report) {
  for (const [name, run] of Object.entries(rows)) {
    if (!name.includes(only)) continue;
    const app = install(packed, `example-${name.replace(/\W/g, '-')}`);
    try {
      await run(app);
      report(`web/examples/${name}`, null);
    } catch (error) {
      report(`web/examples/${name}`, error);
    }
  }
}
