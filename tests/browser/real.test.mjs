// The page with trained models of real sizes: true sizes on the axis, cards that are worth their loss, and nothing outside its place.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { browserOfTests, chooseRuntime, openFile, picture, quantize } from './browser.mjs';
import { realModels } from './real_models.mjs';

const models = realModels();
const browser = await browserOfTests();

const units = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };
const sizeOf = (text) => {
  const [, number, unit] = /([\d.]+) (B|kB|MB|GB)/.exec(text) ?? assert.fail(text);
  return number * units[unit];
};

/** Every label of the axis of sizes, and where it stands. */
const sizeLabels = (page) =>
  page
    .locator('.curve svg text')
    .evaluateAll((all) =>
      all
        .filter((text) => /^[\d.]+ [kMG]?B$/.test(text.textContent))
        .map((text) => ({ at: Number(text.getAttribute('x')), text: text.textContent })),
    );

/** Elements of the page whose text leaves them, or that leave the page sideways. */
const overflowing = (page) =>
  page.evaluate(() => {
    const wide = document.documentElement.scrollWidth - innerWidth;
    const cards = [...document.querySelectorAll('.card')].filter((card) =>
      [...card.querySelectorAll('button, h1, p')].some(
        (part) =>
          part.offsetParent !== null &&
          part.getBoundingClientRect().right > card.getBoundingClientRect().right + 1 &&
          !part.closest('[tabindex="0"], .over-all'),
      ),
    );
    return [...(wide > 0 ? [`page ${wide}`] : []), ...cards.map((card) => card.className)];
  });

async function checkSizes(page, bytes) {
  const sizes = (await page.locator('.cards-size').allTextContents()).map(sizeOf);
  assert.ok(sizes.length > 0);
  for (const [i, size] of sizes.entries()) {
    assert.ok(size < bytes, `${size} of ${bytes}`);
    // Sizes have three digits.
    if (i > 0) assert.ok(size <= 0.955 * sizes[i - 1], `${sizes}`);
  }
  return sizes;
}

for (const name of ['magika', 'detector', 'angle', 'silero'])
  test(`${name}: true sizes on the axis, the careful card first, no headline of made-up inputs`, async () => {
    const path = models[name];
    const { size: bytes } = statSync(path);
    const { page, complaints, close } = await browser.open({ viewport: { width: 1440, height: 900 } });
    await openFile(page, path, basename(path));
    await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 60_000 });
    const sizes = await checkSizes(page, bytes);
    const labels = await sizeLabels(page);
    assert.ok(labels.length > 1);
    const spans = labels.slice(1).map((label, i) => {
      const ratio = Math.log(sizeOf(label.text) / sizeOf(labels[i].text));
      return (label.at - labels[i].at) / ratio;
    });
    // A logarithmic axis: as much room for each ratio everywhere.
    assert.ok(Math.max(...spans) / Math.min(...spans) < 1.001, JSON.stringify(labels));
    assert.ok(sizeOf(labels.at(-1).text) <= 1.1 * bytes && sizeOf(labels[0].text) >= 0.1 * Math.min(...sizes));
    assert.ok(await page.getByRole('radio', { name: /^Safe/ }).isChecked());
    assert.deepEqual(await overflowing(page), []);
    await picture(page, `real-${name}`);
    await quantize(page);
    assert.doesNotMatch(await page.getByRole('heading', { level: 1 }).textContent(), /outputs off/);
    assert.deepEqual(await overflowing(page), []);
    assert.deepEqual(complaints, []);
    await close();
  });

/** The values of SmolLM2 at half precision: 271 MB. */
async function halves() {
  const target = join(browser.folder, 'SmolLM2-135M-Instruct.F16.gguf');
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(models.smollm2);
  await quantizer.quantizeModel(model, 'f16', { target });
  await model.close();
  await quantizer.close();
  return target;
}

for (const [name, shown, cards] of [
  ['Q4_1', '98.4 MB', 1],
  ['F16', '271 MB', 3],
])
  test(`SmolLM2 as GGUF of ${name}: its size, cards that are smaller, layers in order`, async () => {
    const path = name === 'F16' ? await halves() : models.smollm2;
    const { size: bytes } = statSync(path);
    const { page, complaints, close } = await browser.open({ viewport: { width: 1280, height: 720 } });
    await openFile(page, path, basename(path));
    await page.getByText(shown).first().waitFor();
    await page
      .locator('.cards-size')
      .nth(cards - 1)
      .waitFor();
    await checkSizes(page, bytes);
    assert.deepEqual(await overflowing(page), []);
    await picture(page, `real-smollm2-${name}`);
    await quantize(page);
    const rows = await page.locator('.map-row > .fine').allTextContents();
    assert.deepEqual(
      rows.slice(0, 12),
      Array.from({ length: 12 }, (_, i) => `layer ${i}`),
    );
    const map = await page.locator('.map').boundingBox();
    assert.ok(map.height < 520, `${map.height} px`);
    assert.deepEqual(await overflowing(page), []);
    await picture(page, `real-smollm2-${name}-result`);
    assert.deepEqual(complaints, []);
    await close();
  });

test('MiniLM as a folder: 90.9 MB, cards that are smaller, what is saved is as large as it was said to be', async () => {
  const { size: bytes } = statSync(join(models.minilm, 'model.safetensors'));
  const { page, complaints, close } = await browser.open({ viewport: { width: 1440, height: 900 } });
  await page.locator('#folder').setInputFiles(models.minilm);
  await page.getByText('90.9 MB').first().waitFor();
  await chooseRuntime(page, /^transformers, vLLM/);
  // Cards belong to other schemes, of other sizes, once all are measured.
  await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 120_000 });
  await checkSizes(page, bytes);
  const said = sizeOf(await page.locator('.cards-chosen .cards-size').textContent());
  await picture(page, 'real-minilm');
  await quantize(page);
  const saved = sizeOf(await page.getByRole('button', { name: /^Save [\d.]+ MB/ }).textContent());
  assert.ok(Math.abs(saved / said - 1) < 0.002, `${said} announced, ${saved} saved`);
  assert.deepEqual(await overflowing(page), []);
  await picture(page, 'real-minilm-result');
  assert.deepEqual(complaints, []);
  await close();
});
