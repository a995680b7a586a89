// The page as people meet it: errors they can read, hostile names, keyboard, phone, dark; and the rules it keeps.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { twoLayers } from '../node/onnx_model.mjs';
import {
  browserOfTests,
  configText,
  openConfig,
  openSample,
  picture,
  quantize,
  sampleFolder,
  someWeights,
  storedRuns,
  writeConfig,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

test('a cut-off file is refused with its name and the reason, and the page stays usable', async () => {
  const path = join(browser.folder, 'cut.safetensors');
  writeFileSync(path, readFileSync(join(sampleFolder, 'model.safetensors')).subarray(0, 5_000_000));
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(path);
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.textContent(), /cut\.safetensors could not be opened.*file-(truncated|invalid)/s);
  await picture(page, 'light-error');
  await openSample(page);
  assert.equal(await alert.count(), 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('a file dropped anywhere on the page is opened', async () => {
  const path = join(browser.folder, 'dropped.safetensors');
  await writeSafetensors(path, [{ name: 'proj.weight', shape: [64, 128], data: someWeights(64 * 128) }]);
  const { page, complaints, close } = await browser.open();
  const transfer = await page.evaluateHandle((text) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const carried = new DataTransfer();
    carried.items.add(new File([bytes], 'dropped.safetensors'));
    return carried;
  }, readFileSync(path).toString('base64'));
  await page.dispatchEvent('.page-header', 'dragover', { dataTransfer: transfer });
  await page.getByText('Let go to open').waitFor();
  await page.dispatchEvent('.page-header', 'drop', { dataTransfer: transfer });
  await page.getByText('dropped.safetensors', { exact: true }).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  assert.deepEqual(complaints, []);
  await close();
});

test('a recipe makes a GGUF file, which opens and is requantized', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await page.getByLabel('Output format').selectOption('gguf');
  assert.equal(await page.getByLabel('Preset').inputValue(), 'q4_k_m');
  await page.getByText('q4_k_m gives this tensor q6_k').first().waitFor();
  await quantize(page);
  const link = page.getByRole('link', { name: /Q4_K_M\.gguf/ });
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  const path = join(browser.folder, 'made.gguf');
  await download.saveAs(path);
  await picture(page, 'light-gguf');
  await page.locator('#files').setInputFiles(path);
  await page.getByText('made.gguf', { exact: true }).waitFor();
  assert.equal(await page.getByLabel('Output format').inputValue(), 'gguf');
  await page.getByLabel('Preset').selectOption('q4_0');
  await page.getByText(/were quantized already/).waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('an ONNX model stays one, and opens again', async () => {
  const path = join(browser.folder, 'layers.onnx');
  writeFileSync(path, twoLayers().bytes);
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  assert.equal(await page.getByLabel('Output format').locator('option[value=onnx]').count(), 0);
  await page.getByLabel('Output format').selectOption('gguf');
  await page.locator('#files').setInputFiles(path);
  await page.getByText('layers.onnx', { exact: true }).waitFor();
  assert.equal(await page.getByLabel('Output format').inputValue(), 'onnx');
  assert.deepEqual(await page.getByLabel('Output format').locator('option').allTextContents(), ['ONNX']);
  await page.getByLabel('Preset').selectOption('int4_wo_32');
  await quantize(page);
  await picture(page, 'light-onnx');
  const link = page.getByRole('link', { name: /\.onnx/ });
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  const made = join(browser.folder, 'made.onnx');
  await download.saveAs(made);
  await page.locator('#files').setInputFiles(made);
  await page.getByText('made.onnx', { exact: true }).waitFor();
  await openSample(page);
  await page.getByLabel('Output format').locator('option[value=quark]').waitFor({ state: 'attached' });
  assert.equal(await page.getByLabel('Output format').inputValue(), 'compressed-tensors');
  assert.deepEqual(complaints, []);
  await close();
});

test('files without weights are refused by name', async () => {
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(join(sampleFolder, 'config.json'));
  await page
    .getByText('this is the config.json of a model. Open the folder of the model, or choose its weights too.')
    .waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a weight that is not a number stops the run, names the tensor and leaves nothing behind', async () => {
  const path = join(browser.folder, 'nan.safetensors');
  const data = someWeights(128 * 128);
  data[7] = Number.NaN;
  await writeSafetensors(path, [{ name: 'broken.weight', shape: [128, 128], data }]);
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(path);
  await page.getByRole('button', { name: 'Quantize' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.textContent(), /The run failed.*value-not-finite.*broken\.weight/s);
  assert.deepEqual(await storedRuns(page), []);
  assert.ok(await page.getByRole('button', { name: 'Quantize' }).isEnabled());
  assert.deepEqual(complaints, []);
  await close();
});

test('names out of files are shown as text', async () => {
  const name = '<img src=x onerror="document.title=1">.weight';
  const path = join(browser.folder, '<b>model.safetensors');
  await writeSafetensors(path, [{ name, shape: [64, 64], data: someWeights(64 * 64) }]);
  const config = join(browser.folder, 'config.json');
  writeFileSync(config, JSON.stringify({ architectures: ['<i>Model</i>'] }));
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles([path, config]);
  await page.getByRole('button', { name, exact: true }).click();
  assert.ok((await page.locator('.model-facts').textContent()).includes('<i>Model</i>'));
  assert.equal(await page.locator('img, #app b, #app i').count(), 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('an edited config takes effect, and its mistakes are shown', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await openConfig(page);
  const config = JSON.parse(await configText(page));
  await writeConfig(page, { ...config, exclude: ['*'] });
  await page.getByText('of 39').waitFor();
  await page.waitForFunction(() => !document.querySelector('.badge-quantize'));
  await writeConfig(page, { ...config, exclud: [] });
  await page.getByRole('alert').getByText('exclud').first().waitFor();
  assert.ok(await page.getByRole('button', { name: 'Quantize' }).isDisabled());
  await page.getByRole('button', { name: 'Back to the preset' }).click();
  assert.ok((await page.locator('.badge-quantize').count()) > 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('search, sorting and details', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  const numbers = async (cell) => {
    const cells = await page.locator(cell).allInnerTexts();
    return cells.map((text) => Number.parseFloat(text)).filter((value) => !Number.isNaN(value));
  };
  await page.getByRole('columnheader', { name: 'MSE' }).getByRole('button').click();
  const squared = await numbers('.cell-mse');
  assert.equal(squared.length, 28);
  assert.deepEqual(
    squared,
    [...squared].sort((left, right) => right - left),
  );
  await page.getByRole('columnheader', { name: 'SQNR' }).getByRole('button').click();
  const ascending = await numbers('.cell-sqnr');
  assert.ok(ascending.length > 4);
  assert.deepEqual(
    ascending,
    [...ascending].sort((left, right) => left - right),
  );
  assert.match(await page.locator('tbody tr').first().textContent(), /lowest/);
  await page.getByRole('searchbox').fill('down_proj linear');
  assert.equal(await page.locator('tbody tr').count(), 4);
  await page.locator('.cell-name button').first().click();
  assert.match(await page.locator('.row-detail').textContent(), /Why.*Written.*weight_packed.*Cosine/s);
  await page.getByRole('searchbox').fill('no such tensor');
  await page.getByText('No tensor matches').waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('everything works from the keyboard', async () => {
  const { page, complaints, close } = await browser.open();
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
  const tabTo = async (pattern) => {
    for (let presses = 0; presses < 40; presses++) {
      await page.keyboard.press('Tab');
      if (pattern.test(await focused())) return;
    }
    assert.fail(`Tab does not reach ${pattern}`);
  };
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'files');
  await tabTo(/^Try the sample$/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Tensors' }).waitFor();
  await tabTo(/^Quantize$/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Ready to save' }).waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent === 'Ready to save');
  const started = page.waitForEvent('download');
  await tabTo(/model\.safetensors/);
  await page.keyboard.press('Enter');
  assert.equal((await started).suggestedFilename(), 'model.safetensors');
  assert.match(await page.locator('[aria-live]').textContent(), /Run finished/);
  assert.deepEqual(complaints, []);
  await close();
});

for (const [name, options] of [
  ['phone', { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ['dark', { colorScheme: 'dark' }],
]) {
  test(`${name}: nothing is wider than the page, all text has contrast`, async () => {
    const { page, complaints, close } = await browser.open(options);
    await picture(page, `${name}-1-before`);
    await openSample(page);
    await quantize(page);
    await picture(page, `${name}-3-after`);
    await page.locator('.tensors').scrollIntoViewIfNeeded();
    await page.locator('.tensors-head').evaluate((head) => head.scrollIntoView());
    await picture(page, `${name}-4-tensors`);
    const [needed, given] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(needed <= given, `${needed} px in ${given} px`);
    assert.deepEqual(await textsWithoutContrast(page), []);
    assert.deepEqual(complaints, []);
    await close();
  });
}

/** Texts whose colour stands less than 4.5 : 1 from the nearest opaque background (WCAG 2.2, 1.4.3); disabled ones apart. */
function textsWithoutContrast(page) {
  return page.evaluate(() => {
    const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = ([red, green, blue]) => {
      const [r, g, b] = [red, green, blue].map((value) => {
        const share = value / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const backgroundOf = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = channels(getComputedStyle(at).backgroundColor);
        if (color.length === 3 || color[3] === 1) return color;
      }
      return [255, 255, 255];
    };
    const found = new Set();
    for (const element of document.querySelectorAll('body *')) {
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!hasText || element.closest(':disabled, noscript, option')) continue;
      const [text, ground] = [channels(getComputedStyle(element).color), backgroundOf(element)].map(luminance);
      const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
      if (contrast < 4.5) found.add(`${element.className || element.tagName}: ${contrast.toFixed(2)}`);
    }
    return [...found];
  });
}

test('the policy of the page forbids foreign and inline code, and a run shows its progress', async () => {
  const { page, complaints, close } = await browser.open();
  const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
  assert.match(policy, /default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'/);
  assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|http:|\*/);
  // People may paste the address of a model; scripts, styles and pictures come from the page's own place.
  assert.deepEqual(
    policy.split('; ').filter((part) => part.includes('https:')),
    ["connect-src 'self' https:"],
  );
  await openSample(page);
  // Kept from the page: the run of the sample is too short to be watched from here.
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => {
      const progress = document.querySelector('progress');
      if (progress) window.seen.push([progress.value, document.querySelector('.run-tensor').textContent]);
    }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
  await quantize(page);
  const seen = await page.evaluate(() => window.seen);
  assert.ok(seen.some(([value, text]) => value > 0 && /of 39 tensors.*weight/.test(text)));
  assert.deepEqual(
    seen.map(([value]) => value),
    seen.map(([value]) => value).sort((left, right) => left - right),
  );
  assert.deepEqual(complaints, []);
  await close();
});
