// GPTQ's act-order, desc_act without static_groups: columns of a group stand anywhere in the row, and g_idx says where.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readModel, readTensors } from '../interop/safetensors_file.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';

const { data } = readTensors(join(files, 'tiny-llama-reference/calib_tokens.safetensors')).get('input_ids');
const calibration = { tokens: { data: Int32Array.from(data.subarray(0, 1024)), shape: [4, 256] } };

const weightOf = (dtype, group_size) => {
  const symmetric = !dtype.startsWith('u');
  return { dtype, qscheme: 'per_group', group_size, ch_axis: -1, symmetric, scale_type: 'float16' };
};
const configOf = (dtype, group_size, options = {}, name = 'gptq') => ({
  global_quant_config: { weight: weightOf(dtype, group_size) },
  exclude: ['lm_head'],
  algo_config: [{ name, static_groups: false, ...options }],
});
const blockOf = (folder) => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).quantization_config;

/** Elements of a bit stream in 32-bit words. */
const codeOf = (words, bits, i) => (words[Math.floor((i * bits) / 32)] >>> ((i * bits) % 32)) & ((1 << bits) - 1);

function fromHalf(bits) {
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  const size = exponent === 0 ? mantissa * 2 ** -24 : (1 + mantissa / 1024) * 2 ** (exponent - 15);
  return bits >> 15 ? -size : size;
}

/** The weight of a layer of 4 or 8 bits, decoded from what the file holds alone: `at(row, column)`. */
function decoded(tensors, layer, { bits, isWords, zeroOffset }) {
  const part = (name) => tensors.get(`${layer}.${name}`)?.data;
  const middle = 2 ** (bits - 1);
  if (isWords) {
    const [index, zeros] = [part('g_idx'), part('qzeros')];
    const [, rows] = tensors.get(`${layer}.scales`).shape;
    const word = (list, line, row) => (list[line * rows + row] >>> 0) >>> 0;
    return (row, column) => {
      const perWord = 32 / bits;
      const words = word(part('qweight'), Math.floor(column / perWord), row);
      const code = (words >>> ((column % perWord) * bits)) & (2 ** bits - 1);
      const group = index[column];
      const zeroWord = zeros[group * (rows / perWord) + Math.floor(row / perWord)];
      const zero = (zeroWord >>> ((row % perWord) * bits)) & (2 ** bits - 1);
      return (code - zero - zeroOffset) * fromHalf(part('scales')[group * rows + row]);
    };
  }
  const index = part('weight_g_idx');
  const [rows, groups] = tensors.get(`${layer}.weight_scale`).shape;
  const perRow = part('weight_packed').length / rows;
  const zeros = part('weight_zero_point');
  return (row, column) => {
    const words = part('weight_packed').subarray(row * perRow, (row + 1) * perRow);
    const group = index[column];
    const perWord = 32 / bits;
    const zero = zeros
      ? (zeros[Math.floor(row / perWord) * groups + group] >>> ((row % perWord) * bits)) & (2 ** bits - 1)
      : middle;
    return (codeOf(words, bits, column) - zero) * fromHalf(part('weight_scale')[row * groups + group]);
  };
}

test('gptq and compressed-tensors hold the groups that act-order chose; what is read back is what they say', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  for (const [dtype, bits, group] of [
    ['int4', 4, 32],
    ['uint4', 4, 64],
    ['int8', 8, 64],
  ]) {
    const fake = join(folder, `${dtype}-values`);
    const config = configOf(dtype, group);
    await quantizer.quantizeModel(source, config, { target: fake, format: 'fake-quantized', calibration });
    const values = readModel(fake);
    for (const format of ['gptq', 'compressed-tensors']) {
      const what = `${dtype} ${format}`;
      const target = join(folder, `${dtype}-${format}`);
      const report = await quantizer.quantizeModel(source, config, { target, format, calibration });
      const tensors = readModel(target);
      const isWords = format === 'gptq';
      const block = blockOf(target);
      if (isWords) assert.equal(block.desc_act, true);
      else assert.equal(block.config_groups.group_0.weights.actorder, 'group');
      let moved = 0;
      const layers = report.tensors.filter(({ action }) => action === 'quantize');
      assert.equal(layers.length, 28);
      for (const { layer, shape } of layers) {
        const [rows, columns] = shape;
        const index = tensors.get(`${layer}.${isWords ? 'g_idx' : 'weight_g_idx'}`).data;
        const counts = new Map();
        for (const each of index) counts.set(each, (counts.get(each) ?? 0) + 1);
        assert.deepEqual([...counts.values()], Array(columns / group).fill(group), `${what} ${layer}`);
        moved += index.some((each, column) => each !== Math.floor(column / group)) ? 1 : 0;
        const at = decoded(tensors, layer, { bits, isWords, zeroOffset: block.checkpoint_format === 'gptq' ? 1 : 0 });
        const expected = values.get(`${layer}.weight`).data;
        const wide = new Float32Array(1);
        const half = new Uint32Array(wide.buffer);
        for (let i = 0; i < rows * columns; i += 37) {
          const value = at(Math.floor(i / columns), i % columns);
          let simulated = expected[i];
          if (expected instanceof Uint16Array) {
            half[0] = simulated << 16;
            [simulated] = wide;
          }
          assert.ok(Math.abs(value - simulated) <= 2 ** -8 * Math.abs(value), `${what} ${layer} ${i}: ${value}`);
        }
      }
      assert.ok(moved >= 20, `${what}: ${moved}`);
      const written = await modelFor(t, quantizer, target);
      const { tensors: compared } = await quantizer.compare(source, written);
      for (const tensor of report.tensors) {
        const found = compared.find(({ name }) => name === tensor.name);
        if (tensor.action === 'quantize')
          assert.equal(found.error.sqnrDb, tensor.error.sqnrDb, `${what} ${tensor.name}`);
      }
    }
  }
});

test('act-order is better than rounding to nearest, with gptq, gptaq and qronos', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const lossOf = async (name, config) => {
    const target = join(folder, name);
    await quantizer.quantizeModel(source, config, { target, format: 'compressed-tensors', calibration });
    const model = await modelFor(t, quantizer, target);
    const validation = { data: Int32Array.from(data.subarray(4096, 6144)), shape: [8, 256] };
    return (await quantizer.languageModel(model).evaluate({ tokens: validation, bytesPerToken: 1 })).bitsPerToken;
  };
  const nearest = await lossOf('nearest', { ...configOf('int4', 64), algo_config: [] });
  for (const name of ['gptq', 'gptaq', 'qronos']) {
    const found = await lossOf(name, configOf('int4', 64, {}, name));
    assert.ok(found < nearest - 0.01, `${name} ${found}, nearest ${nearest}`);
  }
});

test('formats without a place for the groups refuse act-order before any work, and name the ways out', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  for (const format of ['quark', 'awq'])
    assert.throws(
      () => quantizer.plan(source, configOf('uint4', 64), { format }),
      (error) => {
        assert.equal(error.code, 'format-unsupported');
        assert.match(error.message, /algo_config\/0\/static_groups.*no place for that; set it to true, or write/);
        return true;
      },
    );
  for (const options of [{ static_groups: true }, { desc_act: false }])
    quantizer.plan(source, configOf('uint4', 64, options), { format: 'quark' });
  const { quantization_config: block } = quantizer.plan(source, configOf('int4', 64, { desc_act: false }), {
    format: 'gptq',
  });
  assert.equal(block?.desc_act ?? false, false);
});
