// A picture and a sound of the user's through an ONNX model and what a run made of it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { graph, model, node, noise, tensor } from '../node/onnx/model.mjs';
import { root } from '../setup/command.mjs';
import { browserOfTests, openFile, picture, quantize } from './browser.mjs';

const browser = await browserOfTests();

function written(name, bytes) {
  const path = join(browser.folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** x [1, 3, 32, 32] -> Conv -> y of the same shape. */
const filter = () =>
  model(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight'], ['y'], { name: '/conv/Conv', kernel_shape: [3, 3], pads: [1, 1, 1, 1] }),
      ],
      tensors: [tensor('conv.weight', 'F32', [3, 3, 3, 3], noise(81, 1))],
      inputs: [['x', 'F32', [1, 3, 32, 32]]],
      outputs: [['y', 'F32', [1, 3, 32, 32]]],
    }),
  );

/** audio [1, n] -> 8 classes by its first 64 samples; with a rate that it does not need. */
const classes = () =>
  model(
    graph({
      nodes: [
        node('MatMul', ['audio', 'up'], ['h'], { name: '/up/MatMul' }),
        node('Cast', ['sr'], ['rate'], { to: 1 }),
        node('Mul', ['rate', 'zero'], ['nothing']),
        node('Add', ['h', 'nothing'], ['scores']),
      ],
      tensors: [tensor('up', 'F32', [64, 8], noise(512, 2)), tensor('zero', 'F32', [1], new Float32Array(1))],
      inputs: [
        ['audio', 'F32', ['batch', 64]],
        ['sr', 'I64', [1]],
      ],
      outputs: [['scores', 'F32', ['batch', 8]]],
    }),
  );

/** 16 bits, one channel. */
function wave(samples, rate = 16_000) {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + 2 * samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(2 * rate, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(2 * samples.length, 40);
  const data = Buffer.alloc(2 * samples.length);
  for (const [i, value] of samples.entries()) data.writeInt16LE(Math.round(32767 * value), 2 * i);
  return Buffer.concat([head, data]);
}

test('a picture goes through both models, and their outputs are drawn side by side', async () => {
  const { page, complaints, close } = await browser.open();
  await openFile(page, written('filter.onnx', filter()), 'filter.onnx');
  await quantize(page);
  await page.getByRole('heading', { name: /^A picture of yours/ }).waitFor();
  await page.getByLabel('Values').selectOption('signed');
  await page.locator('#try-file').setInputFiles(join(root, 'web/demo/screenshot.png'));
  const output = page.getByRole('region', { name: 'Output y' });
  await output.waitFor({ timeout: 60_000 });
  assert.match(await output.textContent(), /1 × 3 × 32 × 32.*off by [\d.]+ % (good|visible)/);
  const pixels = await output.locator('canvas').evaluateAll((list) =>
    list.map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return [...data];
    }),
  );
  assert.equal(pixels.length, 2);
  assert.ok(new Set(pixels[0]).size > 20, 'something is drawn');
  const most = Math.max(...pixels[0].map((value, i) => Math.abs(value - pixels[1][i])));
  assert.ok(most > 0 && most < 40, `${most} of 255`);
  await page.getByRole('heading', { level: 1, name: /outputs off by/ }).waitFor();
  await picture(page, 'light-try-picture');
  // A file that is no picture.
  await page.locator('#try-file').setInputFiles(written('no.png', 'not a picture'));
  await page.getByRole('alert').getByText('cannot decode no.png as a picture').waitFor();
  assert.deepEqual(complaints, []);
  await close();
});

test('a sound goes through both models, and the highest values of both are listed', async () => {
  const { page, complaints, close } = await browser.open();
  await openFile(page, written('classes.onnx', classes()), 'classes.onnx');
  await quantize(page);
  await page.getByRole('heading', { name: /^A sound of yours/ }).waitFor();
  const samples = Array.from({ length: 400 }, (_, i) => Math.sin(i / 3) / 2);
  await page.locator('#try-file').setInputFiles(written('tone.wav', wave(samples)));
  const output = page.getByRole('region', { name: 'Output scores' });
  await output.waitFor({ timeout: 60_000 });
  const rows = await output
    .locator('tbody tr')
    .evaluateAll((list) => list.map((row) => [...row.children].map(({ textContent }) => textContent)));
  assert.equal(rows.length, 5);
  const up = noise(512, 2);
  const expected = Array.from({ length: 8 }, (_, n) =>
    samples.slice(0, 64).reduce((sum, value, k) => sum + value * up[8 * k + n], 0),
  );
  const [best] = [...expected.keys()].sort((a, b) => expected[b] - expected[a]);
  assert.equal(rows[0][0], `number ${best}`);
  assert.ok(Math.abs(Number(rows[0][1]) - expected[best]) < 0.01, `${rows[0]}, by hand ${expected[best]}`);
  assert.ok(Math.abs(Number(rows[0][2]) - expected[best]) < 0.1);
  assert.deepEqual(complaints, []);
  await close();
});
