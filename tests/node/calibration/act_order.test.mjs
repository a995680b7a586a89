// GPTQ's act-order, desc_act without static_groups: columns of a group stand anywhere in the row, and g_idx says where.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readModel, readTensors } from '../../interop/safetensors_file.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { firstBlocks } from '../tiny_llama.mjs';

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

/** A weight of 4 or 8 bits in gptq's words, decoded from what the file holds alone: `at(row, column)`. */
function decodedWords(tensors, layer, bits, zeroOffset) {
  const [index, words, zeros, scales] = ['g_idx', 'qweight', 'qzeros', 'scales'].map(
    (part) => tensors.get(`${layer}.${part}`).data,
  );
  const [, rows] = tensors.get(`${layer}.scales`).shape;
  const perWord = 32 / bits;
  const partOf = (word, place) => (word >>> (place * bits)) & (2 ** bits - 1);
  return (row, column) => {
    const code = partOf(words[Math.floor(column / perWord) * rows + row], column % perWord);
    const group = index[column];
    const zero = partOf(zeros[group * (rows / perWord) + Math.floor(row / perWord)], row % perWord);
    return (code - zero - zeroOffset) * fromHalf(scales[group * rows + row]);
  };
}

/** The same of compressed-tensors' packed words with an index, scales in float16. */
function decodedRows(tensors, layer, bits) {
  const part = (name) => tensors.get(`${layer}.${name}`)?.data;
  const [rows, groups] = tensors.get(`${layer}.weight_scale`).shape;
  const perRow = part('weight_packed').length / rows;
  const zeros = part('weight_zero_point');
  const perWord = 32 / bits;
  return (row, column) => {
    const group = part('weight_g_idx')[column];
    const code = codeOf(part('weight_packed').subarray(row * perRow, (row + 1) * perRow), bits, column);
    const word = zeros?.[Math.floor(row / perWord) * groups + group];
    const zero = zeros ? (word >>> ((row % perWord) * bits)) & (2 ** bits - 1) : 2 ** (bits - 1);
    return (code - zero) * fromHalf(part('weight_scale')[row * groups + group]);
  };
}

/** Values as floats, of bfloat16 bits or float32. */
function floatsOf(data) {
  if (data instanceof Float32Array) return data;
  return new Float32Array(Uint32Array.from(data, (bits) => bits << 16).buffer);
}

function writeTensors(path, tensors) {
  const header = {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of tensors) {
    header[name] = { dtype, shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  const json = JSON.stringify(header);
  const text = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const parts = [...tensors.values()].map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  writeFileSync(path, Buffer.concat([length, text, ...parts]));
}

test('gptq stores the groups that act-order chose, and reads them back', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, firstBlocks(t, 1));
  for (const [dtype, bits, group] of [
    ['int4', 4, 32],
    ['uint4', 4, 64],
    ['int8', 8, 64],
  ]) {
    const fake = join(folder, `${dtype}-values`);
    const config = configOf(dtype, group);
    await quantizer.quantizeModel(source, config, { target: fake, format: 'fake-quantized', calibration });
    const values = readModel(fake);
    const target = join(folder, dtype);
    const report = await quantizer.quantizeModel(source, config, { target, format: 'gptq', calibration });
    const tensors = readModel(target);
    const block = blockOf(target);
    assert.equal(block.desc_act, true);
    let moved = 0;
    const layers = report.tensors.filter(({ action }) => action === 'quantize');
    assert.equal(layers.length, 7);
    for (const { layer, shape } of layers) {
      const [rows, columns] = shape;
      const index = tensors.get(`${layer}.g_idx`).data;
      const counts = new Map();
      for (const each of index) counts.set(each, (counts.get(each) ?? 0) + 1);
      assert.deepEqual([...counts.values()], Array(columns / group).fill(group), `${dtype} ${layer}`);
      moved += index.some((each, column) => each !== Math.floor(column / group)) ? 1 : 0;
      const at = decodedWords(tensors, layer, bits, block.checkpoint_format === 'gptq' ? 1 : 0);
      const expected = floatsOf(values.get(`${layer}.weight`).data);
      for (let i = 0; i < rows * columns; i += 37) {
        const value = at(Math.floor(i / columns), i % columns);
        assert.ok(Math.abs(value - expected[i]) <= 2 ** -8 * Math.abs(value), `${dtype} ${layer} ${i}: ${value}`);
      }
    }
    assert.ok(moved >= 5, `${dtype}: ${moved}`);
    const { tensors: compared } = await quantizer.compare(source, await modelFor(t, quantizer, target));
    for (const { name, action, error } of report.tensors) {
      const found = compared.find((tensor) => tensor.name === name);
      if (action === 'quantize') assert.equal(found.error.sqnrDb, error.sqnrDb, `${dtype} ${name}`);
    }
  }
});

test('compressed-tensors files with columns grouped out of order are read', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, firstBlocks(t, 1));
  for (const [dtype, bits, group] of [
    ['int4', 4, 32],
    ['uint4', 4, 64],
  ]) {
    const target = join(folder, dtype);
    await quantizer.quantizeModel(source, { ...configOf(dtype, group), algo_config: [] }, { target });
    const path = join(target, 'model.safetensors');
    const tensors = readTensors(path);
    const layers = [...tensors.keys()]
      .filter((name) => name.endsWith('.weight_packed'))
      .map((name) => name.slice(0, -14));
    assert.equal(layers.length, 7);
    for (const layer of layers) {
      const columns = Number(tensors.get(`${layer}.weight_shape`).data[1]);
      // Any assignment of columns to groups.
      const data = Int32Array.from({ length: columns }, (_, column) =>
        Math.floor(((column * 7 + 3) % columns) / group),
      );
      tensors.set(`${layer}.weight_g_idx`, { dtype: 'I32', shape: [columns], data });
    }
    writeTensors(path, tensors);
    const out = join(folder, `${dtype}-values`);
    const plain = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: ['lm_head'] };
    const grouped = await modelFor(t, quantizer, target);
    await quantizer.quantizeModel(grouped, plain, { target: out, format: 'fake-quantized' });
    const values = readModel(out);
    for (const layer of layers) {
      const { shape, data } = values.get(`${layer}.weight`);
      const found = floatsOf(data);
      const at = decodedRows(tensors, layer, bits);
      for (let i = 0; i < shape[0] * shape[1]; i += 41) {
        const value = at(Math.floor(i / shape[1]), i % shape[1]);
        assert.ok(
          Math.abs(value - found[i]) <= 2 ** -8 * Math.abs(value),
          `${dtype} ${layer} ${i}: ${found[i]}, not ${value}`,
        );
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
    await quantizer.quantizeModel(source, config, { target, format: 'gptq', calibration });
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
  for (const format of ['quark', 'awq', 'compressed-tensors'])
    await assert.rejects(
      () => quantizer.plan(source, configOf('uint4', 64), { format }),
      (error) => {
        assert.equal(error.code, 'format-unsupported');
        assert.match(
          error.message,
          /algo_config\/0\/static_groups.*loaders of .* do not support; set it to true, or write gptq/,
        );
        return true;
      },
    );
  for (const options of [{ static_groups: true }, { desc_act: false }])
    await quantizer.plan(source, configOf('uint4', 64, options), { format: 'quark' });
});
