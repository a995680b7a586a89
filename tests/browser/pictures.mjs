// node tests/browser/pictures.mjs [states] [details] [link] [variants]: takes the pictures of README.md and web/docs/page.md anew, from the
// page in dist/demo: its states, and details of them, and the one that others show with a link to the page. Variants are every state wide, in dark and on a phone, in tests/browser/out.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from '../setup/command.mjs';
import { chooseRuntime, chooseScheme, openConfig, openSample, quantize, show, startBrowser } from './browser.mjs';

const docs = join(root, 'web/docs/pictures');
const out = join(root, 'tests/browser/out');
const worst = 'model.layers.0.mlp.down_proj.weight';

const button = (page, name) => page.getByRole('button', { name, exact: typeof name === 'string' });

/** The curve with all its points measured. */
async function measured(page) {
  await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 180_000 });
  await page.evaluate(() => document.activeElement.blur());
  await page.mouse.move(5, 5);
}

/** The three states, and what "Make it better" gives. */
async function states(browser, folder, name, options) {
  const { page, close } = await browser.open(options);
  const picture = (state, fullPage = false) => page.screenshot({ path: join(folder, `${name}${state}.png`), fullPage });
  await picture('first');
  await button(page, 'Try the sample').click();
  await chooseRuntime(page, /^transformers, vLLM/);
  await measured(page);
  await chooseScheme(page, 'mxfp4');
  await page.evaluate(() => scrollTo(0, 0));
  await picture('choose', options.isMobile === true);
  if (folder === docs) await page.screenshot({ path: join(root, 'web/demo/screenshot.png') });
  await button(page, 'Make it better').click();
  await page.getByText(/of plain rounding recovered/).waitFor({ timeout: 180_000 });
  await button(page, 'Let both write').click();
  await page.locator('.continuation blockquote').nth(1).waitFor({ timeout: 180_000 });
  await page.waitForTimeout(500);
  await page.evaluate(() => document.activeElement.blur());
  await picture('result', true);
  await close();
}

/** In the size that sites which show links ask for, 1200 × 630. */
async function link(browser) {
  const { page, close } = await browser.open({ viewport: { width: 1400, height: 735 }, deviceScaleFactor: 6 / 7 });
  await page.screenshot({ path: join(root, 'web/demo/link.png') });
  await close();
}

async function details(browser) {
  const { page, close } = await browser.open({ viewport: { width: 1280, height: 1420 } });
  // Of an element, or its upper part.
  const picture = async (name, selector, mostHeight = 1300) => {
    await page.evaluate(() => document.activeElement.blur());
    await page.mouse.move(5, 5);
    const element = page.locator(selector).first();
    await element.evaluate((it) => it.scrollIntoView());
    const { height, ...clip } = await element.boundingBox();
    await page.screenshot({ path: join(docs, `${name}.png`), clip: { ...clip, height: Math.min(height, mostHeight) } });
  };
  await openSample(page);
  await openConfig(page);
  await picture('configure', '.curve-card');
  await button(page, /^Edit the config/).click();
  await measured(page);
  await quantize(page);
  await show(page, 'Tensors');
  await page.getByRole('searchbox').fill('layers.0.mlp.down');
  await button(page, worst).click();
  await page.locator('.row-detail canvas').first().waitFor();
  await page.waitForTimeout(500); // the plot's own drawing
  await picture('values', '.tensors table');
  await page.getByRole('searchbox').fill('');
  await show(page, 'Improve');
  await button(page, /int8 per channel/)
    .first()
    .waitFor();
  await page.getByText('Sizes are those of the whole output').waitFor();
  await picture('improve', '.improve');
  await page
    .locator('.improve')
    .getByRole('button', { name: /int8 per channel/ })
    .first()
    .click();
  await button(page, /^Quantize again/).click();
  await page.getByText('tensors kept').waitFor();
  await show(page, 'Compare runs');
  await page.locator('[aria-labelledby="compare"] tbody tr').first().waitFor();
  await picture('compare', '[aria-labelledby="compare"]', 500);
  await show(page, 'Calibrate and measure');
  await button(page, 'Show the built-in texts').click();
  await button(page, /^Measure the model/).click();
  await page.getByText('±').nth(1).waitFor({ timeout: 120_000 });
  await picture('measure', '[aria-labelledby="quality"]');
  await show(page, 'Report and code');
  await picture('code', '[aria-labelledby="report"]', 560);
  await close();
}

main(async (args) => {
  mkdirSync(docs, { recursive: true });
  mkdirSync(out, { recursive: true });
  const browser = await startBrowser();
  try {
    const isWanted = (part) => args.length === 0 || args.includes(part);
    if (isWanted('states')) await states(browser, docs, '', { viewport: { width: 1280, height: 720 } });
    if (isWanted('details')) await details(browser);
    if (isWanted('link')) await link(browser);
    if (!isWanted('variants')) return;
    await states(browser, out, 'wide-', { viewport: { width: 1440, height: 900 } });
    await states(browser, out, 'dark-', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' });
    const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
    await states(browser, out, 'phone-', phone);
    await states(browser, out, 'phone-dark-', { ...phone, colorScheme: 'dark' });
  } finally {
    await browser.close();
  }
});
