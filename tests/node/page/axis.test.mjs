// Labels along the axes of plots: each is the number that it stands for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from '../cli/web_module.mjs';

const units = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

function sizeOf(label) {
  const [, number, unit] = /^(\d+(?:\.\d+)?) (B|kB|MB|GB|TB)$/.exec(label) ?? assert.fail(label);
  return number * units[unit];
}

const isNear = (a, b) => Math.abs(a - b) <= 1e-9 * Math.abs(b);

/** Numbers in [0, 1) that are the same in every run. */
function* numbers(count, seed = 1) {
  for (let i = 0, state = seed; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const between = (low, high, share) => low * (high / low) ** share;

test('a size on an axis parses back to the size that it stands for, from 1 kB to 10 GB', async (t) => {
  const { sizeTickText } = await moduleOf(t, 'present/axis.ts');
  assert.deepEqual([1e3, 1.5e6, 1e8, 1.2e8, 1e9, 5e9, 1e10].map(sizeTickText), [
    '1 kB',
    '1.5 MB',
    '100 MB',
    '120 MB',
    '1 GB',
    '5 GB',
    '10 GB',
  ]);
  for (let power = 1e3; power <= 1e10; power *= 10)
    for (let tenths = 10; tenths < 100; ++tenths) {
      const size = (tenths * power) / 10;
      assert.ok(isNear(sizeOf(sizeTickText(size)), size), `${size}: ${sizeTickText(size)}`);
    }
  for (const share of numbers(500)) {
    const size = Math.round(between(1e3, 1e10, share));
    assert.ok(isNear(sizeOf(sizeTickText(size)), size), `${size}: ${sizeTickText(size)}`);
  }
});

test('both plots label every range of sizes and losses truly, in order, and more than once', async (t) => {
  const { scaleOf } = await moduleOf(t, 'demo/curve/scale.ts');
  const { lossTickText, sizeTickText } = await moduleOf(t, 'present/axis.ts');
  const { curvePicture } = await moduleOf(t, 'present/curve_picture.ts');
  const frame = { width: 900, height: 300, left: 52, right: 22, top: 40, bottom: 46 };
  const shares = [...numbers(600)];
  for (let i = 0; i + 2 < shares.length; i += 3) {
    const bytes = Math.round(between(1e3, 1e10, shares[i]));
    const smallest = Math.round(bytes * between(0.1, 0.97, shares[i + 1]));
    const loss = between(1e-5, 1, shares[i + 2]);
    for (const [kind, base] of [
      ['bits-per-byte', 1.2],
      ['weight-error', 0],
      ['kld', 0],
    ]) {
      const marks = [
        { bytes, loss: base },
        { bytes: smallest, loss: base + loss },
      ];
      const scale = scaleOf(frame, marks, base);
      assert.ok(scale.xTicks.length > 1, `${smallest} to ${bytes}`);
      for (const { at, value } of scale.xTicks) {
        const label = sizeTickText(value);
        assert.ok(Math.abs(scale.x(sizeOf(label)) - at) < 0.01, `${label} at ${at}`);
      }
      assert.ok(scale.yTicks.length > 1, `${loss} of ${kind}`);
      for (const { value } of scale.yTicks) {
        const label = lossTickText(kind, value, scale.yStep);
        const said = label.endsWith(' %') ? parseFloat(label) / 100 : Number(label);
        assert.ok(Math.abs(said - value) <= 1e-6 * scale.yStep, `${label} for ${value}`);
      }
      const metric = { kind, name: kind };
      const points = [{ scheme: 'q', format: 'gguf', bytes: smallest, loss: base + loss, measured: true }];
      const picture = curvePicture({ metric, original: { bytes, loss: base }, points, undecided: [] }, 'model');
      const labels = [...picture.matchAll(/text-anchor="middle">([^<]+)</g)].map(([, label]) => sizeOf(label));
      assert.deepEqual(
        labels,
        [...new Set(labels)].toSorted((a, b) => a - b),
      );
    }
  }
});
