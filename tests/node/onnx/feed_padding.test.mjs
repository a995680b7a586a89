// Activations of an ONNX model without what its attention_mask marks as padding.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskOf, withoutPadding } from '../../../dist/onnxruntime/padding.js';

const feedOf = (data, dims) => ({ attention_mask: { data, dims } });
const batchOf = (shape, dtype = 'F32') => {
  const count = shape.reduce((product, size) => product * size, 1);
  const data = Array.from({ length: count }, (_, i) => i);
  return {
    layer: 'a',
    role: 'input',
    dtype,
    shape,
    data: dtype === 'F32' ? new Float32Array(data) : new Uint16Array(data),
  };
};

test('rows of padding are left out, on either side, batched or flat, in both dtypes', () => {
  for (const one of [BigInt, Number, Boolean]) {
    const bits = [0, 1, 1, 1, 1, 0];
    const data = one === BigInt ? BigInt64Array.from(bits, BigInt) : bits.map(one);
    const mask = maskOf(feedOf(data, [2, 3]), 0);
    for (const shape of [
      [2, 3, 2],
      [6, 2],
    ])
      for (const dtype of ['F32', 'F16']) {
        const batch = batchOf(shape, dtype);
        const found = withoutPadding(batch, mask);
        assert.deepEqual(found.shape, [4, 2]);
        assert.deepEqual([...found.data], [2, 3, 4, 5, 6, 7, 8, 9]);
        assert.equal(found.data.constructor, batch.data.constructor);
        assert.equal(found.layer, 'a');
      }
  }
  assert.equal(withoutPadding(batchOf([1, 2, 2]), maskOf(feedOf([0, 0], [1, 2]), 0)), null);
});

test('feeds without padding, and masks of other ranks, change nothing', () => {
  const batch = batchOf([2, 3, 2]);
  for (const feed of [{}, feedOf([1, 1, 1, 1, 1, 1], [2, 3]), feedOf([0, 1, 1, 0], [1, 1, 2, 2])])
    assert.equal(withoutPadding(batch, maskOf(feed, 0)), batch);
  for (const shape of [
    [2, 2],
    [2, 2, 3, 3],
    [3, 2, 2],
    [4, 2],
    [2, 3],
  ]) {
    const other = batchOf(shape);
    assert.equal(withoutPadding(other, maskOf(feedOf([0, 1, 1, 1, 1, 1], [2, 3]), 0)), other);
  }
  assert.throws(() => maskOf(feedOf([1, 2], [1, 2]), 3), /of feed 3 has a 2/);
});
