// Configs in the page: predictions, form, editor with completion and problems in place, dialects, marked rows.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import {
  browserOfTests,
  configText,
  openConfig,
  openSample,
  picture,
  sampleFolder,
  someWeights,
  writeConfig,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

const json = async (page) => JSON.parse(await configText(page));

test('every preset shows the result it would have for the model', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  const texts = () => page.locator('#preset option').allTextContents();
  await page.waitForFunction(() => {
    const options = [...document.querySelectorAll('#preset option')];
    return options.filter(({ textContent }) => textContent.includes(' · ')).length > options.length / 2;
  });
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(sampleFolder);
  for (const name of ['int8', 'mxfp4', 'fp8']) {
    const { totals } = quantizer.plan(model, name);
    const { title } = quantizer.presets().find((preset) => preset.name === name);
    const wanted = `${title} · ${(totals.bytesAfter / 1e6).toFixed(2)} MB, ${totals.bitsPerWeight.toFixed(2)} bits`;
    assert.ok((await texts()).includes(wanted), wanted);
  }
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  assert.deepEqual(complaints, []);
  await close();
});

test('the form offers what the library accepts, and writes the config', async () => {
  const { page, complaints, close } = await browser.open();
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  await openSample(page);
  assert.ok(!requests.some((url) => /json-editor|schemas/.test(url)), 'the editor came before it was asked for');
  await openConfig(page);
  await picture(page, 'light-config');
  const options = (label) => page.getByLabel(label, { exact: true }).locator('option').allTextContents();
  assert.ok((await options('Dtype')).includes('int3'));
  await page.getByLabel('Group size').selectOption('32');
  await page.waitForFunction(() => document.querySelector('#spec-group_size')?.value === '32');
  assert.equal((await json(page)).global_quant_config.weight.group_size, 32);
  await page.getByLabel('One scale').selectOption('per channel');
  const { weight } = (await json(page)).global_quant_config;
  assert.deepEqual(weight, {
    dtype: 'int4',
    qscheme: 'per_channel',
    ch_axis: 0,
    symmetric: true,
    scale_sign: 'signed',
  });
  await page.getByLabel('Dtype', { exact: true }).selectOption('fp8_e4m3');
  // Floats have no zero points to choose.
  assert.ok(!(await options('Zero points').catch(() => [])).includes('yes (asymmetric)'));
  const quantizer = await createQuantizer({ threads: 0 });
  for (const dtype of await options('Dtype')) {
    await page.getByLabel('Dtype', { exact: true }).selectOption(dtype);
    const found = quantizer.checkConfig(await json(page)).filter(({ severity }) => severity === 'error');
    assert.deepEqual(found, [], dtype);
  }
  await quantizer[Symbol.asyncDispose]();
  assert.deepEqual(complaints, []);
  await close();
});

test('the editor completes by schema and marks problems where they are', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await openConfig(page);
  await writeConfig(page, '{\n  "global_quant_config": { "weight": { "dtype": "int8", } }\n}');
  const field = page.getByRole('textbox', { name: 'Config as JSON' });
  for (let i = 0; i < 6; ++i) await page.keyboard.press('ArrowLeft');
  await page.keyboard.type('"qs');
  const list = page.getByRole('listbox');
  await list.getByRole('option', { name: '"qscheme"' }).waitFor();
  await picture(page, 'light-completion');
  await page.keyboard.press('Enter');
  await page.keyboard.type('"per_');
  await list.getByRole('option', { name: '"per_channel"' }).waitFor();
  assert.deepEqual((await list.getByRole('option').allTextContents()).sort(), [
    '"per_block"',
    '"per_channel"',
    '"per_group"',
    '"per_tensor"',
  ]);
  await list.getByRole('option', { name: '"per_channel"' }).click();
  const config = await json(page);
  assert.equal(config.global_quant_config.weight.qscheme, 'per_channel');

  await writeConfig(page, { global_quant_config: { weight: { dtype: 'int8', qschema: 'per_tensor' } } });
  const marked = page.locator('.code-field .cm-lintRange-error');
  await marked.filter({ hasText: 'qschema' }).waitFor();
  await page.getByRole('alert').getByText('did you mean "qscheme"?').first().waitFor();
  await writeConfig(page, { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['nothing.like.this'] });
  await page.locator('.code-field .cm-lintRange-warning').filter({ hasText: 'nothing.like.this' }).waitFor();
  assert.ok(await field.isVisible());
  assert.deepEqual(complaints, []);
  await close();
});

test('a config is converted, and what was lost is said', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await openConfig(page);
  await page.getByLabel('Written for').selectOption('brevitas');
  await page.getByText('Brevitas has no groups here').first().waitFor();
  assert.equal((await json(page)).dialect, 'brevitas');
  await page.getByText('Edited: the config below is used.').waitFor();
  await picture(page, 'light-convert');
  assert.equal(await page.locator('.spec-form').count(), 0);
  await page.getByLabel('Written for').selectOption('quark');
  assert.ok('global_quant_config' in (await json(page)));
  assert.ok((await page.locator('.badge-quantize').count()) > 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('marked rows get another scheme, are excluded, and become like the rest again', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await page.getByRole('searchbox').fill('down_proj');
  await page.getByRole('checkbox', { name: 'Select all rows of the table' }).check();
  await page.getByText('4 selected').waitFor();
  await page.getByLabel('Scheme of the selected layers').selectOption('mxfp4');
  await page.locator('.badge', { hasText: 'fp4' }).nth(3).waitFor();
  await picture(page, 'light-selection');
  assert.match(await page.locator('.reason').first().textContent(), /layer_quant_config|named/);
  await page.getByRole('button', { name: 'Exclude' }).click();
  await page.locator('.badge-copy').nth(3).waitFor();
  await page.getByRole('button', { name: 'Like the rest' }).click();
  await page.locator('.badge', { hasText: 'int4' }).nth(3).waitFor();
  await page.getByRole('button', { name: 'Clear' }).click();
  assert.equal(await page.locator('.selection-bar').count(), 0);

  await page.getByLabel('Output format').selectOption('gguf');
  await page.getByRole('checkbox', { name: 'Select model.layers.0.mlp.down_proj.weight' }).check();
  await page.getByLabel('Scheme of the selected layers').selectOption('q8_0');
  await page.locator('.badge', { hasText: 'q8_0' }).first().waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a pattern that a preset brings along is not mentioned where nothing matches it, an own one is a warning', async () => {
  const path = join(browser.folder, 'headless.safetensors');
  await writeSafetensors(path, [{ name: 'proj.weight', shape: [64, 128], data: someWeights(64 * 128) }]);
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(path);
  await page.getByText('proj.weight').first().waitFor();
  assert.equal(await page.locator('.diagnostic-warning').count(), 0);
  assert.equal(await page.getByText('matches no layer').count(), 0);
  await openConfig(page);
  await writeConfig(page, { ...(await json(page)), exclude: ['lm_haed'] });
  await page.locator('.diagnostic-warning').filter({ hasText: '"lm_haed" matches no layer' }).waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a result that is larger than the model is said above the summary, before the run', async () => {
  const path = join(browser.folder, 'small.gguf');
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(sampleFolder);
  await quantizer.quantizeModel(model, 'q4_k_m', { target: path });
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  const { page, complaints, close } = await browser.open();
  await page.locator('#files').setInputFiles(path);
  await page.getByRole('heading', { name: 'Tensors' }).waitFor();
  await page.getByLabel('Preset').selectOption('q8_0');
  const summary = page.getByRole('region', { name: 'Summary' });
  const said = summary.getByText(/^the result is [\d.]+ % larger than the model: .*; use \w+, which makes [\d.]+ MB/);
  await said.waitFor();
  await picture(page, 'larger');
  await page.getByLabel('Preset').selectOption('q2_k');
  await said.waitFor({ state: 'detached' });
  assert.deepEqual(complaints, []);
  await close();
});
