// Observers: ranges over pieces, merging, reset, disposal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';

const perChannel = {
  dtype: 'uint8',
  qscheme: 'per_channel',
  ch_axis: 0,
  symmetric: false,
  is_dynamic: false,
  round_method: 'half_even',
  scale_type: 'float',
  observer_cls: 'PerChannelMinMaxObserver',
};
const piece = (...data) => ({ data: Float32Array.from(data), shape: [2, data.length / 2] });

test('ranges grow over pieces', async (t) => {
  const quantizer = await quantizerFor(t);
  const observer = quantizer.createObserver(perChannel);
  observer.update(piece(0, 1, -51, 2));
  observer.update(piece(255, 3, 76.5, 0));
  const { scale, zeroPoint, min, max } = observer.finish();
  assert.deepEqual(min, Float32Array.from([0, -51]));
  assert.deepEqual(max, Float32Array.from([255, 76.5]));
  assert.deepEqual(scale, Float32Array.from([1, 0.5]));
  assert.deepEqual(zeroPoint, Int32Array.from([0, 102]));
  observer[Symbol.dispose]();
});

test('an observer with two passes sees the data twice', async (t) => {
  const quantizer = await quantizerFor(t);
  const observer = quantizer.createObserver({ dtype: 'int8', observer_cls: 'PerTensorMSEObserver' });
  const tensor = { data: Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i) ** 5), shape: [64, 64] };
  assert.equal(observer.passes, 2);
  observer.update(tensor);
  assert.throws(() => observer.finish(), { code: 'state-invalid' });
  observer.nextPass();
  observer.update(tensor);
  const { scale, max } = observer.finish();
  assert.ok(max[0] > 0 && max[0] <= 1);
  assert.deepEqual(scale, quantizer.quantize(tensor, { dtype: 'int8', observer_cls: 'PerTensorMSEObserver' }).scale);
  assert.throws(() => observer.nextPass(), { code: 'state-invalid' });
  observer[Symbol.dispose]();
});

test('merging two observers equals one that saw both pieces', async (t) => {
  const quantizer = await quantizerFor(t);
  const [one, two, both] = [1, 2, 3].map(() => quantizer.createObserver(perChannel));
  one.update(piece(1, 5, -3, 2));
  two.update(piece(9, -2, 0, 4));
  both.update(piece(1, 5, -3, 2));
  both.update(piece(9, -2, 0, 4));
  one.merge(two);
  assert.deepEqual(one.finish(), both.finish());
  for (const observer of [one, two, both]) observer[Symbol.dispose]();
});

test('reset forgets', async (t) => {
  const quantizer = await quantizerFor(t);
  const observer = quantizer.createObserver(perChannel);
  observer.update(piece(-1000, 1000, -1000, 1000));
  observer.reset();
  observer.update(piece(0, 255, 0, 510));
  assert.deepEqual(observer.finish().scale, Float32Array.from([1, 2]));
  observer[Symbol.dispose]();
});

test('observers are freed once and cannot be used afterwards', async (t) => {
  const quantizer = await quantizerFor(t);
  const before = quantizer.liveObjects;
  const observer = quantizer.createObserver(perChannel);
  assert.equal(quantizer.liveObjects, before + 1);
  observer[Symbol.dispose]();
  observer[Symbol.dispose]();
  assert.equal(quantizer.liveObjects, before);
  assert.throws(() => observer.finish(), { code: 'state-invalid' });
});

test('observers of another quantizer, and foreign objects, are refused', async (t) => {
  const [one, two] = [await quantizerFor(t), await quantizerFor(t)];
  const observer = one.createObserver(perChannel);
  const foreign = two.createObserver(perChannel);
  assert.throws(() => observer.merge(foreign), { code: 'argument-invalid' });
  assert.throws(() => observer.merge({}), { code: 'argument-invalid' });
  observer[Symbol.dispose]();
  foreign[Symbol.dispose]();
});

test('an invalid spec is an error when the observer is created, with all its problems', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.throws(
    () => quantizer.createObserver({ dtype: 'int99' }),
    (error) =>
      error.name === 'QuantizationError' &&
      error.code === 'spec-invalid' &&
      error.where === '/dtype' &&
      error.diagnostics.length === 1,
  );
});
