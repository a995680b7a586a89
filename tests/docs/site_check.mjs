// The site of guides in a browser: no link leads nowhere, search finds what a reader would type, and nothing scrolls sideways on a
// phone, in light and dark; tables fit a laptop.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chromium as playwright } from 'playwright-core';
import { chromium } from '../setup/chromium.mjs';
import { serve } from '../setup/static_server.mjs';

/** What a reader types, and the page that has to be among the answers. */
const questions = {
  ollama: 'llama.cpp and Ollama',
  'Content Security Policy': 'Bundlers, workers, policies',
  wasmUrl: 'Bundlers, workers, policies',
  'pattern-unused': 'Errors and diagnostics',
  vLLM: 'vLLM',
  gptq: 'gptqmodel',
};

function requireLinks(folder) {
  const pages = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.html'));
  for (const page of pages) {
    const html = readFileSync(join(folder, page), 'utf8');
    for (const [, link] of html.matchAll(/<a [^>]*href="((?!https?:|#|mailto:)[^"#]+)/g))
      assert.ok(existsSync(join(folder, dirname(page), decodeURI(link))), `${page} links to ${link}`);
  }
}

async function requireAnswers(page) {
  for (const [question, title] of Object.entries(questions)) {
    await page.locator('#tsd-search-trigger').click();
    await page.locator('#tsd-search-input').fill(question);
    const answer = page.locator('#tsd-search-results').getByText(title, { exact: true }).first();
    await answer
      .waitFor({ timeout: 60_000 }) // slow while other tests keep both processors busy
      .catch(() => assert.fail(`the search for "${question}" misses "${title}"`));
    await page.keyboard.press('Escape');
  }
}

async function requireNarrow(browser, url, pages) {
  const backgrounds = new Set();
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme });
    for (const name of pages) {
      await page.goto(`${url}${name}`);
      await page.locator('.tsd-panel').first().waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, 390, `${name} scrolls sideways on a phone`);
    }
    backgrounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    await page.close();
  }
  assert.equal(backgrounds.size, 2, 'light and dark look the same');
}

/** Tables of pages that commands write have as many columns as their results; these may scroll. */
const written = /Fields_of_configs|Accuracy_of_real_models|Compared_with_other_tools/;

async function requireTables(browser, url, pages) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  for (const name of pages.filter((name) => !written.test(name))) {
    await page.goto(`${url}${name}`);
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll('table')].some((table) => table.scrollWidth > table.clientWidth + 1),
    );
    assert.ok(!cut, `${name} has a table that does not fit 1280 pixels`);
  }
  await page.close();
}

/** The page next to the site leads to it. */
async function requireWayFromPage(browser, folder) {
  const server = await serve(join(folder, '..'));
  const page = await browser.newPage();
  await page.goto(`${server.url}index.html`);
  for (const [name, title] of [
    ['Guides', /^wasmquant on one page/],
    ['API', /wasmquant/],
  ]) {
    const popup = page.waitForEvent('popup');
    await page.getByRole('link', { name, exact: true }).click();
    assert.match(await (await popup).locator('h1').last().textContent(), title);
  }
  await server.close();
}

/** Throws with what is wrong. */
export async function checkSite(folder) {
  requireLinks(folder);
  const server = await serve(folder);
  const browser = await playwright.launch({ executablePath: chromium(), args: ['--headless', '--no-sandbox'] });
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${server.url}index.html`);
    assert.match(await page.locator('h1').last().textContent(), /^wasmquant on one page/);
    await requireAnswers(page);
    assert.deepEqual(complaints, []);
    const guides = readdirSync(join(folder, 'documents')).map((name) => `documents/${encodeURIComponent(name)}`);
    await requireNarrow(browser, server.url, ['index.html', ...guides]);
    await requireTables(browser, server.url, ['index.html', ...guides]);
    await requireWayFromPage(browser, folder);
  } finally {
    await browser.close();
    await server.close();
  }
}
