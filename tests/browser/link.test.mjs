// Links to a place of the page: the sample opens with what was chosen, an address is only filled in, and a broken link is the plain page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserOfTests, chosen, openSample, ready, show } from './browser.mjs';

const browser = await browserOfTests();

/** Loads that the way to another address ends are no failures. */
const real = (complaints) => complaints.filter((text) => !/\/assets\/.* failed$/.test(text));

async function follow(page, hash) {
  const address = page.url().replace(/#.*/, '');
  await page.goto('about:blank');
  await page.goto(`${address}${hash}`);
  await ready(page);
}

test('a link restores the choices and a custom config', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page, 'int8');
  await show(page, 'Tensors');
  await page.getByRole('searchbox', { name: 'Search tensors' }).fill('layers.0.mlp.down');
  await page.getByRole('checkbox', { name: 'Select all rows of the table' }).check();
  await page.getByRole('button', { name: 'Exclude' }).click();
  await page.locator('.custom-note').getByText('1 layer rule').waitFor();
  await show(page, 'Report and code');
  const link = await page
    .getByRole('region', { name: 'Report' })
    .getByText(/#model=sample/)
    .textContent();
  const before = await chosen(page);
  await follow(page, new URL(link).hash);
  await page.locator('.custom-note').getByText('1 layer rule').waitFor();
  assert.equal(await chosen(page), before);
  assert.match(before, /^int8 /);
  assert.deepEqual(real(complaints), []);
  await close();
});

test('an address in a link is filled in but not fetched, and its choices apply when a model is opened', async () => {
  const { page, complaints, close } = await browser.open();
  const asked = 'https://models.example/model.safetensors';
  await follow(page, `#model=${encodeURIComponent(asked)}&preset=int8&format=quark`);
  await page.getByText('The link that you followed names this model').waitFor();
  assert.equal(await page.getByLabel('Address of a model').inputValue(), asked);
  assert.deepEqual(real(complaints), []); // a request to another place would be one
  await page.getByRole('button', { name: 'Try the sample' }).click();
  await page.getByText('Where will it run?').waitFor();
  assert.equal(await chosen(page), 'int8 quark');
  await close();
});

test('a link with unknown choices opens the plain page', async () => {
  const { page, complaints, close } = await browser.open();
  for (const hash of [
    '#',
    '#model=sample',
    '#model=sample&preset=int8&format=none',
    '#preset=int8&format=gguf&config=[1]',
  ]) {
    await follow(page, hash);
    await page.getByRole('heading', { name: 'Make a model smaller, in this tab.' }).waitFor();
    assert.equal(await page.getByText('The link that you followed').count(), 0);
  }
  assert.deepEqual(real(complaints), []);
  await close();
});
