// The page as people meet it: errors they can read, hostile names, keyboard, phone, dark; and the rules it keeps.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { twoLayers } from '../node/onnx/model.mjs';
import {
  browserOfTests,
  chooseRuntime,
  chooseScheme,
  chosen,
  configText,
  download,
  openConfig,
  openFile,
  openSample,
  picture,
  quantize,
  quantizeButton,
  sampleFolder,
  show,
  someWeights,
  storedRuns,
  unfold,
  writeConfig,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

test('a truncated file is refused with its name and the reason, and the page stays usable', async () => {
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
  await show(page, 'Tensors');
  assert.equal(await page.locator('tbody tr').count(), 1);
  assert.deepEqual(complaints, []);
  await close();
});

test('the sample as GGUF opens, and its cards show only schemes that make it smaller', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page, 'q4_k_m');
  assert.equal(await chosen(page), 'q4_k_m gguf');
  await show(page, 'Tensors');
  await page.getByText('q4_k_m gives this tensor q6_k').first().waitFor();
  await quantize(page);
  const path = await download(page, 'model-Q4_K_M.gguf');
  const file = { name: 'made.gguf', mimeType: '', buffer: readFileSync(path) };
  await picture(page, 'light-gguf');
  await openFile(page, file, 'made.gguf');
  assert.match(await chosen(page), / gguf$/);
  const sizes = await page.locator('.cards-size').allTextContents();
  assert.ok(sizes.length > 0 && sizes.every((text) => Number.parseFloat(text) < file.buffer.length / 1e6), `${sizes}`);
  await page.getByText(/^\d others: needs/).click();
  assert.ok(await page.getByRole('radio', { name: /transformers, vLLM needs the original/ }).isDisabled());
  assert.equal(await page.getByRole('button', { name: 'Make it better' }).count(), 0);
  await chooseScheme(page, 'q4_0');
  await page.getByText(/were quantized already/).waitFor({ state: 'attached' });
  assert.deepEqual(complaints, []);
  await close();
});

test('an ONNX model is written as ONNX and opens again', async () => {
  const path = join(browser.folder, 'layers.onnx');
  writeFileSync(path, twoLayers().bytes);
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  assert.ok(await page.getByRole('radio', { name: /ONNX Runtime, transformers.js/ }).isEnabled());
  await chooseRuntime(page, /^llama\.cpp/);
  await openFile(page, path, 'layers.onnx');
  assert.match(await chosen(page), / onnx$/);
  const closed = await page.locator('.where-closed .where-title').allTextContents();
  assert.ok(closed.includes('llama.cpp, Ollama, LM Studio') && closed.includes('transformers, vLLM'));
  await chooseScheme(page, 'int4_wo_32');
  await quantize(page);
  await picture(page, 'light-onnx');
  const name = await page.locator('.saved a').getAttribute('download');
  const made = { name: 'made.onnx', mimeType: '', buffer: readFileSync(await download(page, name)) };
  await openFile(page, made, 'made.onnx');
  await openSample(page);
  assert.equal(await chosen(page), 'int4_wo_128 compressed-tensors');
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

test('a NaN weight stops the run, names the tensor and leaves nothing behind', async () => {
  const path = join(browser.folder, 'nan.safetensors');
  const data = someWeights(128 * 128);
  data[7] = Number.NaN;
  await writeSafetensors(path, [{ name: 'broken.weight', shape: [128, 128], data }]);
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(path);
  await quantizeButton(page).click();
  // Another may say that the sizes could not be measured.
  const alert = page.getByRole('alert').filter({ hasText: 'The run failed' });
  await alert.waitFor();
  assert.match(await alert.textContent(), /The run failed.*value-not-finite.*broken\.weight/s);
  assert.deepEqual(await storedRuns(page), []);
  assert.ok(await quantizeButton(page).isEnabled());
  assert.deepEqual(complaints, []);
  await close();
});

test('names from files are shown as text', async () => {
  const name = '<img src=x onerror="document.title=1">.weight';
  const path = join(browser.folder, '<b>model.safetensors');
  await writeSafetensors(path, [{ name, shape: [64, 64], data: someWeights(64 * 64) }]);
  const config = join(browser.folder, 'config.json');
  writeFileSync(config, JSON.stringify({ architectures: ['<i>Model</i>'] }));
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles([path, config]);
  await show(page, 'Tensors');
  await page.getByRole('button', { name, exact: true }).click();
  assert.ok((await page.locator('.model-facts').textContent()).includes('<i>Model</i>'));
  assert.equal(await page.locator('img, #app .model-title b, #app i').count(), 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('an edited config takes effect, its rules are counted, and its mistakes are shown with how to fix them', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await show(page, 'Tensors');
  await openConfig(page);
  const config = JSON.parse(await configText(page));
  await writeConfig(page, { ...config, exclude: [...config.exclude, '*'] });
  await page.waitForFunction(() => !document.querySelector('.badge-quantize'));
  await page.getByText('custom (from int4_wo_128), 1 layer rule').waitFor();
  await writeConfig(page, { ...config, exclud: [] });
  await page.getByRole('alert').getByText('exclud').first().waitFor();
  assert.ok(await quantizeButton(page).isDisabled());
  assert.ok((await page.locator('.tensors tbody tr').count()) > 8, 'the table stays');
  await page.getByRole('button', { name: 'Back to int4_wo_128' }).click();
  await page.locator('.badge-quantize').first().waitFor();
  // What compressed-tensors has no codes for, another format holds.
  await writeConfig(page, {
    ...config,
    global_quant_config: { weight: { ...config.global_quant_config.weight, dtype: 'int3' } },
  });
  await page.getByRole('button', { name: 'Write Quark instead' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.equal(await chosen(page), 'int4_wo_128 quark');
  assert.ok(await quantizeButton(page).isEnabled());
  await page.getByRole('button', { name: 'reset' }).click();
  assert.equal(await page.getByText('custom (from').count(), 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('search, sorting and details', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  await show(page, 'Tensors');
  const errorsOf = async (row) => {
    const cells = await page.locator(`${row} .cell-error`).allInnerTexts();
    return cells.map((text) => Number(/([\d.]+) %/.exec(text)?.[1])).filter((value) => !Number.isNaN(value));
  };
  await page.getByRole('columnheader', { name: 'Weight error' }).getByRole('button').click();
  // Lines by the worst of each.
  const errors = await errorsOf('.tensors tbody tr');
  assert.ok(errors.length > 4 && errors.length < 28, `${errors.length} lines`);
  assert.deepEqual(
    errors,
    [...errors].sort((left, right) => right - left),
  );
  const rows = page.locator('.tensors tbody tr');
  assert.ok(await rows.first().evaluate((row) => row.matches('.row-worst')));
  await unfold(page);
  assert.equal((await errorsOf('.tensors tbody tr:not(.row-group)')).length, 28);
  assert.equal(await rows.getByText('highest').count(), 3);
  await page.getByRole('searchbox').fill('down_proj linear');
  await unfold(page);
  assert.equal(await page.locator('.tensors tbody tr:not(.row-group)').count(), 4);
  await page.locator('.tensors tbody tr:not(.row-group) .cell-name button').first().click();
  assert.match(
    await page.locator('.row-detail').textContent(),
    /Why.*Written.*weight_packed.*Weight error\d+ % (good|visible|bad)/s,
  );
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
  await page.waitForFunction(() => document.activeElement?.textContent === 'tiny-llama (sample)');
  await tabTo(/^All \d+ schemes/);
  await tabTo(/^Quantize to /);
  await page.keyboard.press('Enter');
  // The text of the whole page, which has the focus while the run begins, has that word, too.
  await page.waitForFunction(
    () => document.activeElement?.tagName === 'H1' && /smaller/.test(document.activeElement.textContent),
  );
  const started = page.waitForEvent('download');
  await tabTo(/^Save /);
  await page.keyboard.press('Enter');
  assert.match((await started).suggestedFilename(), /^model-Q\d_\w+\.gguf$/);
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
    await show(page, 'Tensors');
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
      const progress = document.querySelector('progress[aria-label="Run"]');
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
