// The library's scale of NVFP4-like specs is an fp8 number times the second scale, whatever searched it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantizerFor } from '../scratch.mjs';
import { noise } from '../written_model.mjs';

test('searched scales are multiples of the given second scale', async (t) => {
  const quantizer = await quantizerFor(t);
  for (let seed = 1; seed <= 40; ++seed) {
    const data = noise(4 * 32, seed).map((value) => value ** 3);
    const observer_cls = seed % 2 ? 'PerGroupMSEObserver' : 'PerGroupMinMaxObserver';
    const spec = {
      dtype: 'fp4',
      qscheme: 'per_group',
      ch_axis: -1,
      group_size: 16,
      scale_format: 'e4m3',
      observer_cls,
    };
    const { scale, secondScale } = quantizer.quantize({ data, shape: [4, 32] }, spec);
    for (const each of scale) {
      const ratio = Math.fround(each / secondScale);
      const step = 2 ** Math.max(Math.floor(Math.log2(ratio)) - 3, -9);
      assert.ok(ratio <= 448.001 && Math.abs(ratio / step - Math.round(ratio / step)) < 1e-3, `${seed}: ${ratio}`);
    }
  }
});

test('scales and zero points stay finite at the ends of the float range', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const scale_calculation_mode of ['ceil', 'floor', 'even'])
    for (const size of [3e38, 1e-40, 1e-45]) {
      const spec = { dtype: 'mx', mx_element_dtype: 'int8', scale_calculation_mode };
      const data = Float32Array.from({ length: 32 }, (_, i) => (i % 2 ? size : -size));
      const { scale, sharedExponents } = quantizer.quantize({ data, shape: [1, 32] }, spec);
      assert.ok(Number.isFinite(scale[0]) && scale[0] >= 2 ** -149, `${scale_calculation_mode} ${size}: ${scale[0]}`);
      assert.ok(
        size > 1 ? sharedExponents[0] >= 250 && sharedExponents[0] < 255 : sharedExponents[0] <= 1,
        `${scale_calculation_mode} ${size}: ${sharedExponents[0]}`,
      );
      assert.ok(quantizer.fakeQuantize({ data, shape: [1, 32] }, spec).every(Number.isFinite));
    }
});
