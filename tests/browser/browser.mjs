// The page in headless Chromium: serves dist/demo without any special headers, opens pages that record every console
// error, policy violation and request, and makes the files that tests open.
import { once } from 'node:events';
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { chromium } from 'playwright-core';
import { chromium as chromiumPath } from '../setup/chromium.mjs';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';

const launchArguments = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Headless Chromium that asks for nothing by itself. */
export const launchBrowser = () => chromium.launch({ executablePath: chromiumPath(), args: launchArguments });

export const sampleFolder = join(root, 'tests/files/tiny-llama');
const pictures = join(root, 'tests/browser/out');

/** Server, browser and a temporary folder for the pages. `close()` ends all three. */
export async function startBrowser() {
  const server = await serve(join(root, 'dist/demo'));
  const browser = await launchBrowser();
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-browser-'));
  mkdirSync(pictures, { recursive: true });
  return {
    folder,
    /** Opens the page in a profile of its own. `complaints` must be empty at the end of a test. */
    async open(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      const complaints = [];
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('requestfailed', (request) => {
        // The first request to an address asks for its size; its body is dropped unread.
        const isProbe = request.headers().range === 'bytes=0-1' && request.failure()?.errorText === 'net::ERR_ABORTED';
        if (!isProbe) complaints.push(`${request.url()} failed`);
      });
      context.on('request', (request) => {
        const { protocol, href } = new URL(request.url());
        const local = href.startsWith(server.url) || protocol === 'blob:' || protocol === 'data:';
        if (!local) complaints.push(`request to ${href}`);
      });
      await page.goto(server.url);
      await ready(page);
      return { page, complaints, close: () => context.close() };
    },
    async close() {
      await browser.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The browser of a test file, closed after its last test. */
export async function browserOfTests() {
  const browser = await startBrowser();
  after(() => browser.close());
  return browser;
}

/** Waits until a model can be opened. */
export async function ready(page) {
  await page.waitForFunction(() => document.querySelector('#files')?.disabled === false);
}

/** Where the scheme is chosen: the result of a run lies over it. */
export async function toChoice(page) {
  const back = page.getByRole('button', { name: 'Try another size' });
  if (await back.isVisible()) await back.click();
}

async function openPanel(page, name) {
  await toChoice(page);
  const button = page.getByRole('button', { name });
  if ((await button.getAttribute('aria-expanded')) !== 'true') await button.click();
}

/** Takes a preset from the list of all schemes. */
export async function chooseScheme(page, name) {
  await openPanel(page, /^All \d+ schemes/);
  await page.getByRole('searchbox', { name: 'Search schemes' }).fill(name);
  const row = page.locator('.scheme').filter({ has: page.locator('code').getByText(name, { exact: true }) });
  await row.click();
  await page.locator('.scheme[aria-pressed=true]').waitFor();
  await page.getByRole('button', { name: /^All \d+ schemes/ }).click();
}

/** The names of the chosen scheme and format. */
export function chosen(page) {
  return page.evaluate(() => document.querySelector('.run')?.dataset.choice);
}

export async function chooseRuntime(page, title) {
  await toChoice(page);
  await page.getByRole('radio', { name: title }).check();
}

/** Shows one of the views below the state. */
export async function show(page, name) {
  const tab = page.getByRole('tab', { name });
  if ((await tab.getAttribute('aria-selected')) !== 'true') await tab.click();
}

/** Gives each tensor of the table a line of its own: those of equal ones start folded. */
export async function unfold(page) {
  const closed = page.locator('.row-group button[aria-expanded=false]');
  while ((await closed.count()) > 0) await closed.first().click();
}

/** Opens the config and waits for its editor. */
export async function openConfig(page) {
  await openPanel(page, 'Edit the config');
  await page.locator('.code-field .cm-content').waitFor();
}

/** Of configs that fit into the editor: it draws no other lines. */
export function configText(page) {
  return page.locator('.code-field .cm-content').evaluate((content) => {
    return [...content.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\n');
  });
}

/** Types over the config. */
export async function writeConfig(page, config) {
  await page.getByRole('textbox', { name: 'Config as JSON' }).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(typeof config === 'string' ? config : JSON.stringify(config));
}

/**
 * Keeps every text with `part` that the page shows from now on, however shortly: a wait looks now and then. The function
 * that is returned gives them.
 */
export async function textsShown(page, part) {
  await page.evaluate((wanted) => {
    window.shownTexts = [];
    new MutationObserver((records) => {
      for (const { target } of records)
        if (target.textContent.includes(wanted)) window.shownTexts.push(target.textContent);
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  }, part);
  return () => page.evaluate(() => window.shownTexts);
}

export function picture(page, name) {
  return page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Opens the sample, as `npm start` quantizes it unless another scheme is named. */
export async function openSample(page, scheme = 'int4_wo_128') {
  const change = page.getByRole('button', { name: 'change', exact: true });
  await toChoice(page);
  if (await change.isVisible()) await change.click();
  await page.getByRole('button', { name: 'Try the sample' }).click();
  await page.getByText('Where will it run?').waitFor();
  await chooseScheme(page, scheme);
}

/** Opens files, and shows their tensors. */
export async function openFile(page, files, title) {
  await page.locator('#files').setInputFiles(files);
  await page.locator('.model-title').getByText(title, { exact: true }).waitFor();
}

export const quantizeButton = (page) => page.getByRole('button', { name: /^Quantize/ });

export async function quantize(page) {
  await toChoice(page);
  await quantizeButton(page).click();
  await page.locator('.result-head').waitFor({ timeout: 60_000 });
}

/** Clicks a download link and returns the path of what was saved. */
export async function download(page, name) {
  const files = page.locator('.saved-files');
  if (!(await files.evaluate((details) => details.open))) await files.locator('summary').click();
  const started = page.waitForEvent('download');
  await page.locator(`.saved a[download="${name}"]`).click();
  return await (await started).path();
}

/** Names of the runs in browser storage. */
export function storedRuns(page) {
  return page.evaluate(async () => {
    const names = [];
    const storage = await navigator.storage.getDirectory();
    const runs = await storage.getDirectoryHandle('wasmquant-runs', { create: true });
    for await (const name of runs.keys()) names.push(name);
    return names;
  });
}

/**
 * Writes an F32 safetensors file. `tensors`: `{name, shape, data}`, data a Float32Array that is repeated as often as the
 * shape needs; the sizes must fit.
 */
export async function writeSafetensors(path, tensors) {
  const header = {};
  let offset = 0;
  for (const { name, shape } of tensors) {
    const bytes = 4 * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const stream = createWriteStream(path);
  stream.write(length);
  stream.write(text);
  for (const { name, data } of tensors) {
    const [begin, end] = header[name].data_offsets;
    for (let at = begin; at < end; at += data.byteLength) {
      if (!stream.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength))) await once(stream, 'drain');
    }
  }
  stream.end();
  await once(stream, 'finish');
}

/** Deterministic values in (-1, 1). */
export function someWeights(count) {
  const values = new Float32Array(count);
  let state = 1;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    values[i] = state / 2 ** 31;
  }
  return values;
}
