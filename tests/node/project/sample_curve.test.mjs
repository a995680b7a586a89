// The curve that the page shows first: what its file says is what is measured.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from 'wasmquant';
import { calibratedConfig, marked, measureSample } from '../../bench/sample_curve.mjs';
import { root } from '../../setup/command.mjs';

const kept = JSON.parse(readFileSync(join(root, 'web/demo/first/sample_curve.json'), 'utf8'));

test("points of the page's first curve match a new measurement", async () => {
  const quantizer = await createQuantizer({ threads: 2 });
  const model = await quantizer.open(join(root, 'tests/files/tiny-llama'));
  assert.equal(model.bytes, kept.original.bytes);
  const found = (name) => kept.points.find((each) => each.name === name);
  const { bytes, loss } = found('Q4_K_M');
  assert.deepEqual(await measureSample(quantizer, model, 'q4_k_m'), { bytes, loss });
  // Algorithms become better now and then: node tests/bench/sample_curve.mjs writes the file anew.
  const best = kept.points.find(({ isBest }) => isBest);
  const now = await measureSample(quantizer, model, calibratedConfig(quantizer, best.preset), { isCalibrated: true });
  assert.equal(now.bytes, best.bytes);
  assert.ok(Math.abs(now.loss - best.loss) < 0.002, `${now.loss} bits per byte, ${best.loss} in the file`);
  await model.close();
  await quantizer[Symbol.asyncDispose]();
});

test('frontier and best point follow from the points', () => {
  const plain = kept.points.map(({ onFrontier: _, isBest: __, ...point }) => point);
  assert.deepEqual(marked(plain, kept.original), kept.points);
});
