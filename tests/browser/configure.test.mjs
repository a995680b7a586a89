// Configs in the page: predictions, form, editor with completion and problems in place, dialects, marked rows.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import {
  browserOfTests,
  chooseRuntime,
  chooseScheme,
  chosen,
  configText,
  openConfig,
  openFile,
  openSample,
  picture,
  sampleFolder,
  show,
  someWeights,
  unfold,
  writeConfig,
  writeSafetensors,
} from './browser.mjs';

const browser = await browserOfTests();

const json = async (page) => JSON.parse(await configText(page));

test('the list shows every preset with the size of its file and its purpose', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await page.getByRole('button', { name: /^All \d+ schemes/ }).click();
  const quantizer = await createQuantizer({ threads: 0 });
  assert.equal(await page.locator('.scheme').count(), quantizer.presets().length);
  const model = await quantizer.open(sampleFolder);
  for (const name of ['int8', 'mxfp4', 'fp8', 'mxfp6_e2m3', 'q4_k_m']) {
    const format = name === 'mxfp6_e2m3' ? 'quark' : undefined;
    const { totals } = await quantizer.plan(model, name, format && { format });
    const row = page.locator('.scheme').filter({ has: page.locator('code').getByText(name, { exact: true }) });
    await row.getByText(`${(totals.bytesAfter / 1e6).toFixed(2)} MB`).waitFor();
  }
  await picture(page, 'light-schemes');
  await page.getByRole('searchbox', { name: 'Search schemes' }).fill('usual choice');
  const names = await page.locator('.scheme code').allTextContents();
  assert.ok(names.includes('q4_k_m') && names.includes('int4_wo_128'), `${names}`);
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  assert.deepEqual(complaints, []);
  await close();
});

test('a scheme that the chosen runtime does not read selects the runtime that does', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await chooseScheme(page, 'mxfp6_e2m3');
  assert.equal(await chosen(page), 'mxfp6_e2m3 quark');
  assert.ok(await page.getByRole('radio', { name: /^AMD Quark/ }).isChecked());
  await chooseScheme(page, 'q6_k');
  assert.equal(await chosen(page), 'q6_k gguf');
  await chooseRuntime(page, /^gptqmodel/);
  await page.waitForFunction(() => / (gptq|awq)$/.test(document.querySelector('.run').dataset.choice));
  await chooseScheme(page, 'uint4_wo_128');
  assert.equal(await page.getByRole('alert').count(), 0);
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
    scale_refit: 'calibrated',
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

test('the editor completes from the schema and marks each problem in place', async () => {
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

test('converting a config lists what is lost', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await show(page, 'Tensors');
  await openConfig(page);
  await page.getByLabel('Written for').selectOption('brevitas');
  await page.getByText('Brevitas has no groups here').first().waitFor();
  assert.equal((await json(page)).dialect, 'brevitas');
  await page.getByText('custom (from int4_wo_128)').waitFor();
  await picture(page, 'light-convert');
  assert.equal(await page.locator('.spec-form').count(), 0);
  await page.getByLabel('Written for').selectOption('quark');
  assert.ok('global_quant_config' in (await json(page)));
  assert.ok((await page.locator('.badge-quantize').count()) > 0);
  assert.deepEqual(complaints, []);
  await close();
});

test('marked rows can get another scheme, be excluded, and be reset', async () => {
  const { page, complaints, close } = await browser.open();
  await openSample(page);
  await show(page, 'Tensors');
  await page.getByRole('searchbox').fill('down_proj');
  await page.getByRole('checkbox', { name: 'Select all rows of the table' }).check();
  await page.getByText('4 selected').waitFor();
  await page.getByLabel('Scheme of the selected layers').selectOption('mxfp4');
  await page.locator('.row-group .badge', { hasText: 'fp4' }).waitFor();
  await picture(page, 'light-selection');
  assert.match(await page.locator('.reason').first().textContent(), /layer_quant_config|named/);
  // The marks go with each action: what is marked next stands for itself.
  const markAll = async () => {
    assert.equal(await page.locator('.selection-bar').count(), 0);
    await page.getByRole('checkbox', { name: 'Select all rows of the table' }).check();
    await page.getByText('4 selected').waitFor();
  };
  await markAll();
  await page.getByRole('button', { name: 'Exclude' }).click();
  await page.locator('.row-group .badge-copy').waitFor();
  await markAll();
  await page.getByRole('button', { name: 'Like the rest' }).click();
  await page.locator('.row-group .badge', { hasText: 'int4' }).waitFor();
  await markAll();
  await page.getByRole('button', { name: 'Clear' }).click();
  assert.equal(await page.locator('.selection-bar').count(), 0);

  await page.getByRole('searchbox').fill('');
  await page.getByRole('checkbox', { name: 'Select model.layers.{0..3}.mlp.down_proj.weight' }).check();
  await page.getByText('4 selected').waitFor();
  await unfold(page);
  for (const layer of [1, 2, 3])
    await page.getByRole('checkbox', { name: `Select model.layers.${layer}.mlp.down_proj.weight` }).uncheck();
  await page.getByText('1 selected').waitFor();
  await page.getByRole('button', { name: 'Clear' }).click();

  await chooseRuntime(page, /^llama\.cpp/);
  await unfold(page);
  await page.getByRole('checkbox', { name: 'Select model.layers.0.mlp.down_proj.weight' }).check();
  await page.getByLabel('Scheme of the selected layers').selectOption('q8_0');
  await page.locator('.badge', { hasText: 'q8_0' }).first().waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test("a preset's pattern that matches nothing is not mentioned; the user's own pattern is a warning", async () => {
  const path = join(browser.folder, 'headless.safetensors');
  await writeSafetensors(path, [{ name: 'proj.weight', shape: [64, 128], data: someWeights(64 * 128) }]);
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'headless.safetensors');
  await chooseScheme(page, 'int4_wo_128');
  await show(page, 'Tensors');
  await page.getByText('proj.weight').first().waitFor();
  assert.equal(await page.locator('.diagnostic-warning').count(), 0);
  assert.equal(await page.getByText('matches no layer').count(), 0);
  await openConfig(page);
  await writeConfig(page, { ...(await json(page)), exclude: ['lm_haed'] });
  await page.locator('.diagnostic-warning').filter({ hasText: '"lm_haed" matches no layer' }).waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a result larger than the model is announced before the run, with a scheme to use instead', async () => {
  const path = join(browser.folder, 'small.gguf');
  const quantizer = await createQuantizer({ threads: 0 });
  const model = await quantizer.open(sampleFolder);
  await quantizer.quantizeModel(model, 'q4_k_m', { target: path });
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  const { page, complaints, close } = await browser.open();
  await openFile(page, path, 'small.gguf');
  await chooseScheme(page, 'q8_0');
  const said = page.getByText(/^The result is [\d.]+ % larger than the model: .*; use \w+, which gives [\d.]+ MB/);
  await said.waitFor();
  await picture(page, 'larger');
  const button = page.getByRole('button', { name: /^Take \w+/ });
  const [, instead] = /^Take (\w+)/.exec(await button.textContent());
  await button.click();
  await said.waitFor({ state: 'detached' });
  assert.equal(await chosen(page), `${instead} gguf`);
  assert.deepEqual(complaints, []);
  await close();
});
