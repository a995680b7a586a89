// node tests/browser/pictures.mjs: takes the pictures of README.md and web/docs/page.md anew, from the page in dist/demo.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from '../setup/command.mjs';
import { openConfig, openSample, quantize, startBrowser } from './browser.mjs';

const folder = join(root, 'web/docs/pictures');
const worst = 'model.layers.0.mlp.down_proj.weight';

async function take(browser) {
  const { page, close } = await browser.open({ viewport: { width: 1280, height: 1420 } });
  const show = (name) => page.getByRole('tab', { name }).click();
  const button = (name) => page.getByRole('button', { name, exact: typeof name === 'string' });
  // Of an element, or its upper part.
  const picture = async (name, selector, mostHeight = 1300) => {
    await page.evaluate(() => document.activeElement.blur());
    await page.mouse.move(5, 5);
    const element = page.locator(selector).first();
    await element.evaluate((it) => it.scrollIntoView());
    const { height, ...clip } = await element.boundingBox();
    await page.screenshot({
      path: join(folder, `${name}.png`),
      clip: { ...clip, height: Math.min(height, mostHeight) },
    });
  };
  await openSample(page);
  await openConfig(page);
  await picture('configure', '[aria-labelledby="step-choose"]');
  await page.locator('.config-text summary').click();
  await quantize(page);
  await page.getByRole('searchbox').fill('layers.0.mlp.down');
  await button(worst).click();
  await page.locator('.row-detail canvas').first().waitFor();
  await page.waitForTimeout(500); // the plot's own drawing
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(root, 'web/demo/screenshot.png') });
  await picture('values', '.tensors table');
  await page.getByRole('searchbox').fill('');
  await show('Improve');
  await button(/int8 per channel/)
    .first()
    .waitFor();
  await page.waitForTimeout(2000); // the others
  await picture('improve', '.improve');
  await button(/int8 per channel/)
    .first()
    .click();
  await button('Quantize').click();
  await button('Quantize again').waitFor();
  await show('Compare runs');
  await page.locator('[aria-labelledby="compare"] tbody tr').first().waitFor();
  await picture('compare', '[aria-labelledby="compare"]', 500);
  await show('Calibrate and measure');
  await button("Take the sample's texts").click();
  await button(/^Measure the model/).click();
  await page.getByText('±').nth(1).waitFor({ timeout: 120_000 });
  await picture('measure', '[aria-labelledby="quality"]');
  await show('Report and code');
  await picture('code', '[aria-labelledby="report"]', 560);
  await close();
}

main(async () => {
  mkdirSync(folder, { recursive: true });
  const browser = await startBrowser();
  try {
    await take(browser);
  } finally {
    await browser.close();
  }
});
