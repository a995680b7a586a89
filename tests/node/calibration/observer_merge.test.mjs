// For every observer: batches dealt out to several observers at random, whole or in parts, and merged, give what one
// observer gives that saw them all.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';

const observers = {
  per_tensor: [
    ...['MinMax', 'Histogram', 'HistogramPro', 'Percentile', 'MSE', 'MSELastBins', 'PowOf2MinMax', 'PowOf2MinMSE'],
    ...['CurrentMinMax', 'RunningMinMax', 'RangeMSE', 'RangeCrossEntropy', 'MeanPercentile', 'MeanMax', 'ThresholdMSE'],
    ...['MeanThresholdMSE', 'Entropy'],
  ]
    .map((name) => (name === 'HistogramPro' ? 'PerTensorHistogramObserverPro' : `PerTensor${name}Observer`))
    .concat(['LSQObserver', 'TQTObserver']),
  per_channel: [
    ...['MinMax', 'PowOf2MinMax', 'PowOf2MinMSE', 'LSQ', 'CurrentMinMax', 'RunningMinMax', 'RangeMSE'],
    ...['RangeCrossEntropy', 'ThresholdMSE', 'MSE', 'HQQ'],
  ].map((name) => `PerChannel${name}Observer`),
  per_group: ['PerGroupMinMaxObserver', 'PerGroupMSEObserver', 'HQQObserver', 'PerBlockMXObserver'],
};

/** mulberry32. */
function randomFrom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { next, below: (count) => Math.floor(next() * count) };
}

const integersOnly = /Pro$|PowOf2|EntropyObserver|LSQ|TQT|HQQ/;

function specOf(random, qscheme, observer_cls) {
  const dtypes = ['int8', 'int4', 'uint8', ...(integersOnly.test(observer_cls) ? [] : ['fp8_e4m3'])];
  const dtype = observer_cls === 'PerBlockMXObserver' ? 'fp4' : dtypes[random.below(dtypes.length)];
  return {
    dtype,
    qscheme,
    observer_cls,
    ...(qscheme !== 'per_tensor' && { ch_axis: qscheme === 'per_channel' ? 0 : -1 }),
    ...(qscheme === 'per_group' && { group_size: 8 }),
    ...(dtype.includes('int') && { symmetric: random.below(2) === 0 }),
  };
}

function batchOf(random, shape) {
  const scale = 2 ** (random.below(6) - 3);
  const sign = [0, 1, -1][random.below(3)];
  const data = Float32Array.from({ length: shape[0] * shape[1] }, () => {
    const value = (random.next() + random.next() + random.next() - 1.5) * scale;
    return sign === 0 ? value : sign * Math.abs(value);
  });
  return { data, shape };
}

/** Runs of consecutive elements, in random order. */
function partsOf(random, { data, shape }, batch) {
  const parts = [];
  for (let offset = 0; offset < data.length; ) {
    const length = Math.min(1 + random.below(data.length), data.length - offset);
    const tensor = { data: data.slice(offset, offset + length), shape: [length] };
    parts.push({ tensor, part: { batch, shape, offset } });
    offset += length;
  }
  return parts.sort(() => random.next() - 0.5);
}

/** Every observer sees its pieces; before the second pass all know all ranges. */
function together(all, pieces) {
  const [first, ...others] = all;
  const feed = () => {
    for (const { tensor, part, at } of pieces) all[at].update(tensor, part);
  };
  const gather = () => {
    for (const other of others) first.merge(other);
  };
  feed();
  gather();
  if (first.passes === 2) {
    for (const other of others) other.merge(first);
    for (const each of all) each.nextPass();
    feed();
    gather();
  }
  return first.finish();
}

const seeds = 4;
for (const [qscheme, names] of Object.entries(observers))
  for (const name of names)
    test(`${name}, ${qscheme}: merged observers equal one that saw everything`, async (t) => {
      const quantizer = await quantizerFor(t, { threads: 0 });
      for (let seed = 1; seed <= seeds; ++seed) {
        const random = randomFrom(seed * 7919);
        const spec = specOf(random, qscheme, name);
        const shape = [1 + random.below(5), 8 * (1 + random.below(4))];
        const batches = Array.from({ length: 2 + random.below(4) }, () => batchOf(random, shape));
        const made = [];
        const create = (count) =>
          Array.from({ length: count }, () => made[made.push(quantizer.createObserver(spec)) - 1]);
        const whole = batches.map((tensor) => ({ tensor, at: 0 }));
        const expected = together(create(1), whole);
        const count = 2 + random.below(2);
        const dealt = (piece) => ({ ...piece, at: random.below(count) });
        const said = JSON.stringify({ seed, spec, shape, batches: batches.length });
        assert.deepEqual(together(create(count), whole.map(dealt)), expected, `batches without a number: ${said}`);
        const numbered = batches.map((tensor, batch) => ({ tensor, part: { batch } }));
        const shuffled = [...numbered].sort(() => random.next() - 0.5);
        assert.deepEqual(together(create(count), shuffled.map(dealt)), expected, `batches in any order: ${said}`);
        const parts = batches.flatMap((batch, number) => partsOf(random, batch, number));
        assert.deepEqual(together(create(count), parts.map(dealt)), expected, `parts of batches: ${said}`);
        for (const observer of made) observer[Symbol.dispose]();
      }
      assert.equal(quantizer.liveObjects, 0);
    });

test('numbered and unnumbered batches do not mix, and parts stay inside their batch', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const [one, two] = [1, 2].map(() => quantizer.createObserver({ dtype: 'int8', qscheme: 'per_tensor' }));
  const tensor = { data: Float32Array.of(1, -2), shape: [2] };
  one.update(tensor);
  const before = one.finish();
  assert.throws(() => one.update(tensor, { batch: 3 }), { code: 'argument-invalid', message: /number all batches/ });
  two.update(tensor, { batch: 3 });
  assert.throws(() => one.merge(two), { code: 'argument-invalid' });
  assert.throws(() => two.update(tensor, { batch: 4, shape: [3], offset: 2 }), { code: 'shape-mismatch' });
  assert.throws(() => two.update(tensor, { batch: -1 }), { code: 'argument-invalid', message: /part\.batch/ });
  assert.throws(() => two.update(tensor, { batch: 0, ofset: 1 }), { message: /did you mean offset/ });
  assert.throws(() => one.update({ data: Float32Array.of(9, Number.NaN), shape: [2] }), { code: 'value-not-finite' });
  assert.deepEqual(one.finish(), before, 'a refused batch changes nothing');
});
