// Names that are markup, in every view of the page and in the report that it saves as HTML: text, and nothing else. In
// Chromium.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  chooseScheme,
  quantize,
  quantizeButton,
  show,
  someWeights,
  startBrowser,
  writeSafetensors,
} from '../browser/browser.mjs';

/** Markup of every kind that runs code, fetches or changes a document. An element it became has the attribute `injected`. */
const markup = [
  '<img injected src=x onerror="window.hit=1">',
  '<script injected>window.hit=1</script>',
  '<ScRiPt injected\n>window.hit=1</sCrIpT\t>',
  '"><svg injected onload=window.hit=1>',
  "'><svg injected><script injected>window.hit=1</script>",
  '" injected autofocus onfocus="window.hit=1',
  "' injected onmouseover='window.hit=1",
  '</title><script injected>window.hit=1</script>',
  '</style><script injected>window.hit=1</script>',
  '</pre></code></td></table><b injected>',
  '--><b injected>',
  ']]><b injected>',
  '<iframe injected srcdoc="<script>parent.hit=1</script>">',
  '<a injected href="javascript:window.hit=1">x</a>',
  '<style injected>*{display:none}</style>',
  '<base injected href="https://example.invalid/">',
  '<meta injected http-equiv=refresh content="0;url=https://example.invalid">',
  '<math><mtext><table><mglyph><style><img injected src=x onerror=window.hit=1>',
  '<template injected><img src=x onerror=window.hit=1></template>',
  '<details injected open ontoggle=window.hit=1>',
  '<object injected data="data:text/html,x">',
  '&lt;b injected&gt;',
  '&#60;b injected&#62;',
  '<\u0000b injected>',
  '{{constructor.constructor("window.hit=1")()}}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a name, not a template
  '${window.hit=1}',
];
const names = markup.map((text) => `${text}.weight`);

/** Elements that markup became, and whether code of it ran. */
function traces() {
  return { elements: document.querySelectorAll('[injected]').length, ran: 'hit' in window };
}

/** A run of a model whose tensors, file and architecture are markup, through every view; then its report as HTML. */
async function onPage(browser, check) {
  const model = join(browser.folder, '<b injected>.safetensors');
  const data = someWeights(32 * 64);
  await writeSafetensors(
    model,
    names.map((name) => ({ name, shape: [32, 64], data })),
  );
  const config = join(browser.folder, 'config.json');
  writeFileSync(config, JSON.stringify({ architectures: [markup[0]], model_type: markup[1] }));
  const { page, complaints, close } = await browser.open();
  const clean = async (where) => {
    const { elements, ran } = await page.evaluate(traces);
    check(elements === 0 && !ran, `${where}: ${elements} elements of names, code ${ran ? 'ran' : 'did not run'}`);
  };
  await page.locator('#files').setInputFiles([model, config]);
  const rows = page.locator('.cell-name button');
  await quantizeButton(page).waitFor();
  await clean('choosing');
  await show(page, 'Tensors');
  await rows.first().waitFor();
  const shown = await rows.allTextContents();
  for (const name of names) check(shown.includes(name), `the table does not show ${JSON.stringify(name)}`);
  await chooseScheme(page, 'int8');
  await quantize(page);
  await clean('result');
  await show(page, 'Tensors');
  await clean('table');
  for (const row of await rows.all()) await row.click();
  await page.waitForFunction((all) => document.querySelectorAll('.row-detail').length === all, names.length);
  await clean('opened rows');
  await page.getByRole('button', { name: 'Tree' }).click();
  await clean('tree');
  await page.getByLabel('Search tensors').fill('<b injected>none');
  await page.getByText('No tensor matches “<b injected>none”').waitFor();
  await clean('search');
  for (const view of ['Improve', 'Calibrate and measure', 'Compare runs', 'Report and code']) {
    await page.getByRole('tab', { name: view }).click();
    if (view === 'Improve') await page.getByText('Sizes are those of the whole output').waitFor();
    await clean(view);
  }
  const started = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as HTML' }).click();
  const html = readFileSync(await (await started).path(), 'utf8');

  const broken = join(browser.folder, '<i injected>.safetensors');
  await writeSafetensors(broken, [{ name: names[0], shape: [32, 64], data: data.map(() => Number.NaN) }]);
  await page.locator('#files').setInputFiles(broken);
  await page.getByText('<i injected>.safetensors', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Quantize' }).click();
  const alert = page.getByRole('alert').filter({ hasText: 'value-not-finite' });
  await alert.waitFor();
  check((await alert.textContent()).includes(names[0]), 'the error does not show the name');
  await clean('error');
  check(complaints.length === 0, `complaints: ${complaints}`);
  await close();
  return html;
}

/** The report without the policy that it carries: escaping alone has to do. */
async function inReport(browser, html, check) {
  const bare = html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, '');
  check(bare !== html, 'the report carries no policy');
  const { page, close } = await browser.open();
  await page.goto('about:blank');
  await page.setContent(bare);
  const { elements, ran } = await page.evaluate(traces);
  check(elements === 0 && !ran, `report: ${elements} elements of names, code ${ran ? 'ran' : 'did not run'}`);
  const scripts = await page.locator('script, img, iframe, svg, object, base, a').count();
  check(scripts === 0, `report: ${scripts} elements that a report never has`);
  const cells = await page.locator('tbody td:first-child').allTextContents();
  for (const name of names)
    check(cells.includes(name.replaceAll('\u0000', '')), `the report does not show ${JSON.stringify(name)}`);
  await close();
}

export async function pageMarkup(_folder, check) {
  const browser = await startBrowser();
  try {
    await inReport(browser, await onPage(browser, check), check);
  } finally {
    await browser.close();
  }
}
