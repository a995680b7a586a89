// An ONNX model of more tensors than the page plans by itself, with the user's feeds: curve, static inputs and outputs without a long
// task of the main thread.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { captureActivations } from 'wasmquant/onnxruntime';
import { graph, model as modelBytes, node, noise, tensor } from '../node/onnx/model.mjs';
import { npyFile } from '../node/sources/npy_file.mjs';
import {
  browserOfTests,
  download,
  openConfig,
  openFile,
  picture,
  quantizeButton,
  show,
  textsShown,
  writeConfig,
} from './browser.mjs';
import { assertShort, longestTask } from './long_tasks.mjs';

const browser = await browserOfTests();
const layers = 160;
const width = 32;

/** x of [rows, 32] through matrices with biases, small enough that values neither grow nor vanish. */
function network() {
  const nodes = [];
  const tensors = [];
  let last = 'x';
  for (let layer = 0; layer < layers; ++layer) {
    const next = layer + 1 === layers ? 'y' : `h${layer}`;
    const values = noise(width * width, layer + 1).map((value) => 0.03 * value);
    for (let i = 0; i < width; ++i) values[i * width + i] += 1;
    tensors.push(
      tensor(`w${layer}`, 'F32', [width, width], values),
      tensor(`b${layer}`, 'F32', [width], noise(width, layer)),
    );
    nodes.push(
      node('MatMul', [last, `w${layer}`], [`m${layer}`], { name: `/layers.${layer}/MatMul` }),
      node('Add', [`m${layer}`, `b${layer}`], [`a${layer}`]),
      node('Tanh', [`a${layer}`], [next]),
    );
    last = next;
  }
  const inputs = [['x', 'F32', ['rows', width]]];
  return modelBytes(graph({ nodes, tensors, inputs, outputs: [['y', 'F32', ['rows', width]]] }));
}

const feed = noise(4 * width, 3);
const bytes = network();

const config = {
  global_quant_config: {
    weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true },
    input_tensors: { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: false },
  },
  exclude: [],
};

/** The same run in Node. */
async function inNode() {
  const ort = await import('onnxruntime-web/wasm');
  Object.assign(ort.env.wasm, { numThreads: 1 });
  ort.env.logLevel = 'error';
  const quantizer = await createQuantizer({ threads: 1 });
  const model = await quantizer.open(new File([bytes], 'network.onnx'));
  const parts = [];
  const stream = new WritableStream({ write: (part) => void parts.push(part.slice()) });
  const feeds = [{ x: new ort.Tensor('float32', feed, [4, width]) }];
  await quantizer.quantizeModel(model, config, { target: stream, calibration: captureActivations(ort, model, feeds) });
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  return Buffer.concat(parts);
}

test('320 tensors with feeds are measured, run and compared without a task over 100 ms', async () => {
  const { page, complaints, close } = await browser.open();
  // By its path: the bytes of a buffer would be decoded in the page, by the tool that drives it.
  const file = join(browser.folder, 'network.onnx');
  writeFileSync(file, bytes);
  const found = {};
  found.open = await longestTask(page, async () => {
    await openFile(page, file, 'network.onnx');
    await quantizeButton(page).and(page.locator(':enabled')).waitFor();
  });
  found.curve = await longestTask(page, async () => {
    await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 300_000 });
  });
  found.outputs = await longestTask(page, async () => {
    await page.getByRole('button', { name: 'Measure outputs and speed' }).click();
    await page.getByText('on 4 inputs').waitFor({ timeout: 300_000 });
    await page.getByText(/\d+ schemes measured/).waitFor({ timeout: 300_000 });
    await page
      .locator('.cards-speed')
      .getByText(/ ms a run, .* the original/)
      .first()
      .waitFor();
  });
  found.feeds = await longestTask(page, async () => {
    await show(page, 'Calibrate and measure');
    const buffer = Buffer.from(npyFile('<f4', [4, width], feed));
    await page.locator('#feed-files').setInputFiles([{ name: 'x.npy', mimeType: '', buffer }]);
    await page.getByText('1 sample from x.npy').waitFor();
  });
  await openConfig(page);
  await writeConfig(page, config);
  await page.waitForTimeout(600); // the editor's pause
  const shown = await textsShown(page, 'Running the model on sample');
  found.run = await longestTask(page, async () => {
    await quantizeButton(page).click();
    await page.locator('.result-head').waitFor({ timeout: 300_000 });
  });
  assert.match((await shown()).join('\n'), /Running the model on sample 1 of 1/);
  found.compare = await longestTask(page, async () => {
    await page.getByRole('button', { name: 'Compare outputs and speed' }).click();
    await page
      .getByText(/outputs compared on 1 of your inputs/)
      .first()
      .waitFor({ timeout: 120_000 });
  });
  const saved = readFileSync(await download(page, 'network_int8.onnx'));
  assert.ok(saved.equals(await inNode()), 'the same bytes as in Node');
  await assertShort(page, found);
  await picture(page, 'light-large-onnx');
  assert.deepEqual(complaints, []);
  await close();
});
