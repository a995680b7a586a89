// What the page tells about a run: where values lie, what would help, how two runs differ, and the same run in code.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { graph, model, node, noise, tensor } from '../node/onnx/model.mjs';
import { root } from '../setup/command.mjs';
import {
  browserOfTests,
  chooseScheme,
  download,
  openFile,
  openSample,
  picture,
  quantize,
  sampleFolder,
  show,
  unfold,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

const worst = 'model.layers.0.mlp.down_proj.weight';

async function inNode(use) {
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(sampleFolder);
  try {
    return await use(quantizer, model);
  } finally {
    await model.close();
    await quantizer[Symbol.asyncDispose]();
  }
}

test("an opened row shows the library's histograms of the values before and after", async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  await show(page, 'Tensors');
  await unfold(page);
  await page.getByRole('button', { name: worst, exact: true }).click();
  const figure = page.getByRole('img', { name: /^Histogram/ });
  await figure.waitFor();
  const strip = page.getByRole('img', { name: /^Error per channel/ });
  await strip.waitFor();
  await picture(page, 'light-values');

  const found = await inNode(async (quantizer, model) => {
    const target = join(browser.folder, 'values');
    await quantizer.quantizeModel(model, 'int4_wo_128', { target });
    const quantized = await quantizer.open(target);
    const distribution = await quantizer.distribution(model, quantized, worst);
    await quantized.close();
    return distribution;
  });
  const label = await figure.getAttribute('aria-label');
  assert.ok(label.includes(`${found.count.toLocaleString('en')} values`), label);
  assert.ok(label.includes(`${found.beyond.toLocaleString('en')} (`), label);
  const lowest = Math.min(...found.channelSqnrDb);
  const largest = (100 * 10 ** (-lowest / 20)).toFixed(0);
  assert.match(await strip.getAttribute('aria-label'), new RegExp(`largest ${largest} % \\((visible|bad)\\)`));
  await page
    .getByText(/Weight error/)
    .first()
    .waitFor();
  assert.doesNotMatch(await page.locator('main').textContent(), /\bdB\b/);
  // Both outlines reach over the whole width and have a height; a value of the grid has its line.
  const drawn = await figure.evaluate((svg) => {
    const boxOf = (name) => {
      const { width, height } = svg.querySelector(`.histogram-${name}`).getBBox();
      return { width, height };
    };
    const lines = svg.querySelector('.histogram-grid').getAttribute('d').split('M').length - 1;
    return { before: boxOf('before'), after: boxOf('after'), axis: boxOf('axis'), lines };
  });
  assert.equal(drawn.lines, found.grid?.length ?? 0);
  for (const { width, height } of [drawn.before, drawn.after]) {
    assert.ok(Math.abs(width - drawn.axis.width) < 1, `${width} of ${drawn.axis.width}`);
    assert.ok(height > 20 && height <= drawn.axis.height, `${height} of ${drawn.axis.height}`);
  }
  assert.deepEqual(complaints, []);
  await close();
});

test('a suggestion says what it costs and gains, and is applied with a click', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await quantize(page);
  await show(page, 'Improve');
  await page.getByText('Sizes are those of the whole output').waitFor();
  await picture(page, 'light-improve');
  const first = page.locator('.suggestion').first();
  assert.match(await first.textContent(), new RegExp(worst.replaceAll('.', '\\.')));

  const expected = await inNode(async (quantizer, model) => {
    const { config } = quantizer.presets().find(({ name }) => name === 'int4_wo_128');
    const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
    const edited = { ...config, layer_quant_config: { [worst.replace('.weight', '')]: { weight } } };
    const [tried] = await quantizer.preview(model, edited, [worst]);
    const [now] = await quantizer.preview(model, config, [worst]);
    const bytes =
      (await quantizer.plan(model, edited)).totals.bytesAfter - (await quantizer.plan(model, config)).totals.bytesAfter;
    const target = join(browser.folder, 'improved');
    const { totals } = await quantizer.quantizeModel(model, edited, { target });
    const [was, is] = [now, tried].map(({ error }) => 10 ** (-error.sqnrDb / 20));
    return {
      bytes,
      times: was / is,
      after: `${(100 * is).toFixed(1)} %`,
      kept: totals.quantized - 1,
      file: join(target, 'model.safetensors'),
    };
  });
  const button = first.getByRole('button', { name: /int8 per channel/ });
  const text = await button.textContent();
  assert.ok(text.includes(`+${(expected.bytes / 1000).toFixed(1)} kB`), text);
  assert.ok(text.endsWith(`, ${expected.after} good`), text);
  await button.click();
  await first.getByRole('button', { name: /✓ int8 per channel/ }).waitFor();
  await page.getByRole('button', { name: /^Quantize again/ }).click();
  await page.getByText(`, ${expected.kept} tensors kept`).waitFor();
  const saved = readFileSync(await download(page, 'model.safetensors'));
  assert.equal(Buffer.compare(saved, readFileSync(expected.file)), 0, 'not the bytes of a whole run');
  await show(page, 'Tensors');
  await unfold(page);
  const row = page.locator('.tensors tbody tr').filter({ has: page.getByRole('button', { name: worst, exact: true }) });
  await row.getByText(`${expected.after} good`).waitFor();

  await show(page, 'Compare runs');
  const compared = page.locator('.compare-table tbody tr').filter({ hasText: worst });
  assert.ok((await compared.textContent()).endsWith(`${expected.times.toFixed(1)}× less error`));
  assert.equal(await page.locator('.compare-table tbody td:last-child').filter({ hasText: '× less' }).count(), 1);
  await page.getByText(/^Weight error: good up to 5.* 27 layers of the same error are left out/).waitFor();
  await picture(page, 'light-compare');
  assert.deepEqual(complaints, []);
  await close();
});

test('layers of an ONNX model in int8 are offered finer scales, the best for its bytes first in sight', async () => {
  const path = join(browser.folder, 'outliers.onnx');
  const weights = noise(128 * 128, 1).map((value, i) => (i % 977 === 0 ? 60 * value : value));
  const nodes = [node('MatMul', ['x', 'w'], ['y'], {}, '/product')];
  const tensors = [tensor('w', 'F32', [128, 128], weights)];
  const [inputs, outputs] = ['x', 'y'].map((name) => [[name, 'F32', ['n', 128]]]);
  writeFileSync(path, model(graph({ nodes, tensors, inputs, outputs })));
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'outliers.onnx');
  await chooseScheme(page, 'int8');
  await quantize(page);
  await show(page, 'Improve');
  await page.getByText('Sizes are those of the whole output').waitFor();
  const offers = page.locator('.suggestion .offers li');
  assert.match(await offers.nth(0).textContent(), /^int8 in groups of 32: \+[\d.]+ kB, [\d.]+ % good/);
  assert.match((await offers.allTextContents()).join(), /not quantized/);
  assert.equal(await offers.getByText('most for its bytes').count(), 1);
  await offers.nth(0).getByRole('button').click();
  await page.getByRole('button', { name: /^Quantize again/ }).click();
  await show(page, 'Tensors');
  const row = page.locator('.tensors tbody tr').filter({ hasText: 'groups of 32' });
  await row.locator('.cell-error').getByText('good').waitFor(); // of a run with that choice: before it, "was"
  assert.deepEqual(complaints, []);
  await close();
});

test('GGUF recipes are improved by type', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page, 'q4_k_m');
  await quantize(page);
  await show(page, 'Improve');
  await page.getByText('Sizes are those of the whole output').waitFor();
  const button = page.getByRole('button', { name: /^q8_0 blocks: \+.* % good$/ }).first();
  await button.click();
  await page.getByRole('button', { name: /✓ q8_0/ }).waitFor();
  await page.getByRole('button', { name: /^Quantize again/ }).click();
  await page.getByText('tensors kept').waitFor();
  await show(page, 'Tensors');
  await page.locator('.badge-quantize', { hasText: 'q8_0' }).first().waitFor();
  // Names and the order of rows are others in the file: the values are those of this weight all the same.
  const query = 'model.layers.0.self_attn.q_proj.weight';
  await unfold(page);
  await page.getByRole('button', { name: query, exact: true }).click();
  const strip = page.getByRole('img', { name: /^Error per channel/ });
  await strip.waitFor();
  const label = await strip.getAttribute('aria-label');
  const [, largest] = /largest (\d+(?:\.\d+)?) % \((?:good|visible|bad)\)/.exec(label) ?? assert.fail(label);
  assert.ok(Number(largest) < 30, `${largest} %`);
  await page.getByRole('img', { name: /^Histogram. 65,536 values/ }).waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('the command line and the JavaScript shown write the same bytes as the page', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await chooseScheme(page, 'int8');
  await quantize(page);
  await show(page, 'Report and code');
  await picture(page, 'light-code');
  const saved = readFileSync(await download(page, 'model.safetensors'));
  const text = (name) => page.getByRole('region', { name, exact: true }).textContent();
  const line = await text('Command line');
  const script = await text('JavaScript');
  for (const [name, run] of [
    [
      'line',
      (cwd) => execFileSync('sh', ['-c', line.replace('npx wasmquant', `node ${join(root, 'dist/cli.js')}`)], { cwd }),
    ],
    [
      'script',
      (cwd) =>
        execFileSync(
          process.execPath,
          ['--input-type=module', '-e', `process.chdir(${JSON.stringify(cwd)});${script}`],
          { cwd: root },
        ),
    ],
  ]) {
    const folder = join(browser.folder, name);
    cpSync(sampleFolder, join(folder, 'tiny-llama'), { recursive: true });
    run(folder);
    const made = readFileSync(join(folder, 'tiny-llama-quantized/model.safetensors'));
    assert.equal(Buffer.compare(saved, made), 0, name);
  }
  assert.deepEqual(complaints, []);
  await close();
});

test('the report is saved as JSON and as a single page, with hostile names as text', async () => {
  const name = '<img src=x onerror="document.title=1">\u2028.weight';
  const path = join(browser.folder, 'hostile.safetensors');
  const data = Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i));
  await writeSafetensors(path, [{ name, shape: [64, 64], data }]);
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'hostile.safetensors');
  await chooseScheme(page, 'int8');
  await quantize(page);
  await show(page, 'Report and code');
  const save = async (button) => {
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: button }).click(),
    ]);
    return readFileSync(await saved.path(), 'utf8');
  };
  const report = JSON.parse(await save('Save as JSON'));
  assert.equal(report.tensors[0].name, name);
  assert.ok(report.tensors[0].error.sqnrDb > 30);
  const html = await save('Save as HTML');
  const file = join(browser.folder, 'report.html');
  writeFileSync(file, html);
  const other = await page.context().newPage();
  await other.setContent(html);
  assert.equal(await other.locator('img, script').count(), 0);
  assert.ok((await other.locator('table').textContent()).includes(name));
  assert.equal(await other.title(), 'hostile.safetensors, int8');
  assert.doesNotMatch(html, /https?:/);
  assert.deepEqual(complaints, []);
  await close();
});
