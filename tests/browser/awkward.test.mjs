// Awkward inputs: each ends with a sentence and a way on, one after another on one page, which must still take a model at the end.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { awkward } from './awkward_inputs.mjs';
import { browserOfTests, openSample, quantize, quantizeButton } from './browser.mjs';

const browser = await browserOfTests();

/** What no sentence may have in it. */
const raw = /undefined|\bnull\b|\[object|TypeError|SyntaxError|RangeError|ReferenceError|RuntimeError|unreachable/;
/** What to do, in a word that begins it. */
const action =
  /\b(use|fix|export|download|open|choose|unpack|save|make|give|run|name|take|replace|enter|rename|set|write|get|convert|put|check|must end in)\b/i;

async function bring(page, { files = {}, folder, address }) {
  if (address) {
    await page.getByLabel('Address of a model').fill(address);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    return;
  }
  const place = mkdtempSync(join(browser.folder, 'awkward-'));
  const target = folder ? join(place, folder) : place;
  mkdirSync(target, { recursive: true });
  const paths = Object.entries(files).map(([name, content]) => {
    const path = join(target, name);
    writeFileSync(path, content);
    return path;
  });
  if (folder) await page.locator('#folder').setInputFiles(target);
  else await page.locator('#files').setInputFiles(paths);
}

/** `opened` or `refused`, and the words that the page has for it. */
async function outcome(page) {
  const model = page.locator('.model-title');
  const alert = page.getByRole('alert');
  await model.or(alert).first().waitFor({ timeout: 30_000 });
  await page.waitForTimeout(100); // the advice is loaded then
  if (await model.isVisible()) return { ended: 'opens', text: await page.locator('main').textContent() };
  return { ended: 'refused', text: (await alert.first().locator('p:not(.fine)').allTextContents()).join(' ') };
}

/** Once a model is open, a run writes files, or a sentence says why it cannot start. */
async function goOn(page) {
  const run = quantizeButton(page);
  await run.or(page.locator('.conflict')).first().waitFor();
  if (await run.isEnabled()) {
    await run.click();
    const end = page.locator('.result-head').or(page.locator('.run .message-error'));
    await end.first().waitFor({ timeout: 60_000 });
    return await end.first().textContent();
  }
  return await page.locator('.choose-main').textContent();
}

test(`${awkward.length} awkward inputs: no dead end`, { timeout: 600_000 }, async (t) => {
  assert.ok(awkward.length >= 40);
  const { page, complaints, close } = await browser.open();
  for (const input of awkward) {
    await t.test(input.title.slice(0, 60), async () => {
      await page.waitForLoadState('networkidle'); // what is still loaded would be a failed request
      await page.reload();
      await page.waitForFunction(() => document.querySelector('#files')?.disabled === false);
      await bring(page, input);
      const { ended, text } = await outcome(page);
      process.stdout.write(`# ${input.title.slice(0, 40)}: ${ended}: ${text.replaceAll('\n', ' | ').slice(0, 400)}\n`);
      assert.equal(ended, input.ends, text);
      assert.match(text, input.says);
      assert.doesNotMatch(text, raw);
      if (ended === 'refused') {
        assert.match(text, /^[\p{Lu}\p{Lo}]?.*[.)”"]$/u, 'whole sentences');
        assert.match(text, action, 'what to do');

        assert.ok(await page.locator('#files').isEnabled(), 'another file can be chosen');
      } else {
        const end = await goOn(page);
        process.stdout.write(`#   run: ${end.replaceAll('\n', ' | ').slice(0, 300)}\n`);
        assert.doesNotMatch(end, raw);
      }
    });
  }
  await openSample(page);
  await quantize(page);
  const own = complaints.filter((text) => !/status of 404|sample\/nothing-here/.test(text));
  assert.deepEqual(own, []);
  await close();
});
