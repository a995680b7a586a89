// Calibration of static inputs and outputs, and weighted observers, by activations: batches that are pushed, files of
// them, and the built-in forward pass. References: AMD Quark's formulas computed here, and the statistics that PyTorch
// took of tiny-llama (tests/files/tiny-llama/README.md).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors, writeFloats } from '../interop/safetensors_file.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from './scratch.mjs';

const reference = join(files, 'tiny-llama-reference');
const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const tensorOf = (dtype, rest = {}) => ({ dtype, qscheme: 'per_tensor', is_dynamic: false, symmetric: true, ...rest });
const configOf = (config) => ({ global_quant_config: { weight, ...config }, exclude: ['lm_head'] });
const layers = ['up_proj', 'down_proj'];

function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
const floats = (count, seed, scale = 1) => {
  const next = random(seed);
  return Float32Array.from({ length: count }, () => (next() - 0.4) * scale * (1 + 8 * next() ** 6));
};

/** A model of two linear layers: up [24, 16] and down [16, 24]. */
function smallModel(t) {
  const folder = scratchFolder(t);
  const path = join(folder, 'model.safetensors');
  writeFloats(
    path,
    new Map([
      ['mlp.up_proj.weight', { shape: [24, 16], data: floats(24 * 16, 1) }],
      ['mlp.down_proj.weight', { shape: [16, 24], data: floats(16 * 24, 2) }],
      ['norm.weight', { shape: [16], data: new Float32Array(16).fill(1) }],
    ]),
  );
  return path;
}
const features = { up_proj: { input: 16, output: 24 }, down_proj: { input: 24, output: 16 } };
const rows = 40;
/** What went in and came out, as one tensor each. */
const whole = layers.flatMap((layer, i) =>
  ['input', 'output'].map((role, j) => {
    const columns = features[layer][role];
    return { layer: `mlp.${layer}`, role, data: floats(rows * columns, 10 + 2 * i + j, 3 + i), shape: [rows, columns] };
  }),
);
/** The same in batches of so many rows. */
const split = (batches, step) =>
  batches.flatMap(({ data, shape: [count, columns], ...rest }) =>
    Array.from({ length: Math.ceil(count / step) }, (_, i) => {
      const part = data.subarray(i * step * columns, (i + 1) * step * columns);
      return { ...rest, data: part, shape: [1, part.length / columns, columns] };
    }),
  );

const tensors = (bytes) => {
  const start = 8 + Number(Buffer.from(bytes).readBigUInt64LE());
  const header = JSON.parse(Buffer.from(bytes).toString('utf8', 8, start));
  return (name) => {
    assert.ok(header[name], `${name} is missing; there are ${Object.keys(header).join(', ')}`);
    const { dtype, shape, data_offsets } = header[name];
    const data = Uint8Array.from(bytes.subarray(start + data_offsets[0], start + data_offsets[1]));
    const views = { F32: Float32Array, BF16: Uint16Array, I8: Int8Array, U8: Uint8Array };
    assert.equal(data_offsets[0] % data.BYTES_PER_ELEMENT, 0);
    return { dtype, shape, data: new views[dtype](data.buffer), offset: start + data_offsets[0] };
  };
};

async function quantized(quantizer, model, config, calibration, format = 'compressed-tensors') {
  const { stream, bytes } = memoryStream();
  const report = await quantizer.quantizeModel(model, config, { target: stream, format, calibration });
  return { report, bytes: bytes(), tensor: tensors(bytes()) };
}

const f32 = Math.fround;
const range = (data) => [Math.min(0, ...data), Math.max(0, ...data)];

test('static scales and zero points are those of the formulas, stored as each format has them', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const symmetric = (data, steps) => f32(Math.max(...data.map(Math.abs)) / steps);
  for (const format of ['compressed-tensors', 'quark']) {
    const isQuark = format === 'quark';
    const config = configOf({
      input_tensors: tensorOf('int8'),
      output_tensors: tensorOf('uint8', { symmetric: false }),
    });
    const { tensor, report } = await quantized(quantizer, model, config, whole, format);
    for (const { layer, role, data } of whole) {
      const scale = tensor(`${layer}.${role}_scale`);
      assert.deepEqual(scale.shape, isQuark ? [] : [1]);
      assert.equal(scale.dtype, 'F32');
      assert.equal(scale.offset % 4, 0);
      const [min, max] = range(data);
      const expected = role === 'input' ? symmetric(data, 127.5) : f32(f32(max - min) / 255);
      assert.equal(scale.data[0], expected, `${layer} ${role}`);
      if (role === 'output') {
        const zero = tensor(`${layer}.output_zero_point`);
        const point = Math.round(0 - f32(min / expected));
        assert.equal(zero.dtype, isQuark ? 'U8' : 'I8');
        assert.equal(zero.data[0], isQuark ? point : point - 128);
      } else if (isQuark) {
        assert.deepEqual([...tensor(`${layer}.input_zero_point`).data], [0]);
      }
    }
    const outputs = quantizer
      .plan(model, config, { format })
      .tensors.find(({ layer }) => layer === 'mlp.up_proj').outputs;
    assert.ok(!outputs.some(({ name }) => name.includes('input_scale')), 'nothing is promised without calibration');
    assert.deepEqual(
      report.diagnostics.filter(({ code }) => code === 'not-applied'),
      [],
    );
  }
  const fp8 = configOf({ weight: tensorOf('fp8_e4m3'), input_tensors: tensorOf('fp8_e4m3') });
  const inputs = whole.filter(({ role }) => role === 'input');
  for (const format of ['compressed-tensors', 'quark']) {
    const { tensor } = await quantized(quantizer, model, fp8, inputs, format);
    for (const { layer, data } of inputs) assert.equal(tensor(`${layer}.input_scale`).data[0], symmetric(data, 448));
  }
  const channels = configOf({ input_tensors: tensorOf('int8', { qscheme: 'per_channel', ch_axis: -1 }) });
  const { tensor } = await quantized(quantizer, model, channels, inputs, 'quark');
  for (const { layer, data, shape } of inputs) {
    const scale = tensor(`${layer}.input_scale`);
    assert.deepEqual(scale.shape, [shape[1]]);
    for (let i = 0; i < shape[1]; ++i)
      assert.equal(
        scale.data[i],
        symmetric(
          data.filter((_, at) => at % shape[1] === i),
          127.5,
        ),
      );
  }
});

test('the config block of a folder says what was stored, and the folder is read back', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = await modelFor(t, quantizer, join(reference, 'calib_tokens.safetensors'));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const blocks = {};
  for (const format of ['compressed-tensors', 'quark']) {
    const target = join(folder, format);
    const report = await quantizer.quantizeModel(model, config, { target, format, calibration: tokens });
    assert.deepEqual(report.diagnostics, []);
    blocks[format] = JSON.parse(readFileSync(join(target, 'config.json'))).quantization_config;
    const back = await modelFor(t, quantizer, target);
    assert.deepEqual((await quantizer.compare(model, back)).diagnostics, []);
  }
  const { input_activations: inputs } = blocks['compressed-tensors'].config_groups.group_0;
  assert.deepEqual([inputs.dynamic, inputs.strategy, inputs.num_bits, inputs.symmetric], [false, 'tensor', 8, true]);
  assert.equal(blocks.quark.global_quant_config.input_tensors.is_dynamic, false);
  for (const block of Object.values(blocks)) quantizer.parseConfig(block);
});

test('the same bytes for any split into batches, order of layers, kind of source and number of threads', async (t) => {
  const path = smallModel(t);
  const folder = scratchFolder(t);
  const observers = ['PerTensorMinMaxObserver', 'PerTensorPercentileObserver', 'PerTensorMSEObserver', 'TQTObserver'];
  const stored = new Map();
  const numbered = split(whole, 4).map((batch, i, all) => {
    const before = all.slice(0, i).filter(({ layer, role }) => layer === batch.layer && role === batch.role).length;
    return [`${batch.layer}.${batch.role}.${before}`, batch];
  });
  writeFloats(join(folder, 'batches.safetensors'), new Map(numbered.reverse()));
  writeFloats(
    join(folder, 'whole.safetensors'),
    new Map(whole.map((batch) => [`${batch.layer}.${batch.role}`, batch])),
  );
  for (const threads of [0, 1, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, path);
    for (const observer_cls of observers) {
      const spec = tensorOf('int8', { observer_cls });
      const config = configOf({ input_tensors: spec, output_tensors: spec });
      const again = {
        async *[Symbol.asyncIterator]() {
          yield* split(whole, 3);
        },
      };
      const interleaved = split(whole, 5).sort((a, b) => a.data[0] - b.data[0]);
      const sources = [whole, split(whole, 7), interleaved, again, join(folder, 'batches.safetensors')];
      sources.push(new Uint8Array(readFileSync(join(folder, 'whole.safetensors'))));
      sources.push(await modelFor(t, quantizer, join(folder, 'whole.safetensors')));
      for (const calibration of sources) {
        const { bytes } = await quantized(quantizer, model, config, calibration, 'quark');
        if (!stored.has(observer_cls)) stored.set(observer_cls, bytes);
        assert.deepEqual(bytes, stored.get(observer_cls), observer_cls);
      }
    }
    assert.equal(quantizer.liveObjects, 1 + observers.length, 'the models');
  }
  assert.equal(
    new Set([...stored.values()].map((bytes) => Buffer.from(bytes).toString('base64'))).size,
    observers.length,
  );
});

test("Brevitas's averages are taken by batch", async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8', { observer_cls: 'PerTensorMeanMaxObserver' }) });
  const inputs = whole.filter(({ role }) => role === 'input');
  const halves = split(inputs, rows / 2);
  const { tensor } = await quantized(quantizer, model, config, halves);
  for (const { layer } of inputs) {
    const maxima = halves.filter((half) => half.layer === layer).map(({ data }) => Math.max(...data.map(Math.abs)));
    const mean = (maxima[0] + maxima[1]) / 2;
    const { data } = tensor(`${layer}.input_scale`);
    assert.ok(Math.abs(data[0] - mean / 127.5) < 1e-6 * mean, `${data[0]} for ${maxima}`);
  }
});

test('bad data is refused by the name of its layer, and nothing is written', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const folder = scratchFolder(t);
  const config = configOf({ input_tensors: tensorOf('int8') });
  const refused = async (calibration, expected, asked = config) => {
    const options = { target: join(folder, 'out'), calibration };
    await assert.rejects(quantizer.quantizeModel(model, asked, options), expected);
    assert.ok(!readdirSync(folder).includes('out'));
  };
  const [up, , down] = whole;
  await refused([up], { code: 'argument-invalid', message: /no data came for mlp\.down_proj\.input/ });
  await refused([], { message: /mlp\.up_proj\.input/ });
  await refused([], { message: /mlp\.down_proj\.input/ });
  await refused([{ ...up, layer: 'mlp.up_pro' }], {
    code: 'argument-invalid',
    where: 'mlp.up_pro',
    message: /mlp\.up_proj/,
  });
  const wrong = { ...down, data: new Float32Array(46), shape: [2, 23] };
  await refused([up, wrong], { code: 'shape-mismatch', where: 'mlp.down_proj.input', message: /23 features.*24/ });
  const empty = { ...up, data: new Float32Array(0), shape: [0, 16] };
  await refused([empty], { code: 'shape-mismatch', where: 'mlp.up_proj.input', message: /empty/ });
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const bad = { ...up, data: Float32Array.from(up.data).fill(value, 21, 22) };
    await refused([down, bad], {
      code: 'value-not-finite',
      where: 'mlp.up_proj.input',
      message: /element 21 of batch 0/,
    });
  }
  const short = { ...up, shape: [3, 16] };
  await refused([short], { code: 'shape-mismatch', where: 'mlp.up_proj.input' });
  await refused([{ ...up, data: [1, 2] }], { code: 'argument-invalid', where: 'mlp.up_proj.input' });
  await refused([{ layer: 'mlp.up_proj', role: 'weight' }], { code: 'argument-invalid', where: 'calibration' });
  await refused([null], { code: 'argument-invalid', where: 'calibration' });
  const integers = join(folder, 'named.safetensors');
  writeFloats(
    integers,
    new Map([
      ['mlp.up_proj.input', up],
      ['mlp.up_proj.weights', up],
    ]),
  );
  await refused(integers, { code: 'argument-invalid', where: 'mlp.up_proj.weights' });

  const percentile = configOf({ input_tensors: tensorOf('int8', { observer_cls: 'PerTensorPercentileObserver' }) });
  const once = (function* () {
    yield* whole;
  })();
  await refused(once, { code: 'argument-invalid', message: /PerTensorPercentileObserver of mlp\..*twice/ }, percentile);
  let pass = 0;
  const changing = { [Symbol.iterator]: () => (pass++ < 2 ? whole : split(whole, 7).slice(1))[Symbol.iterator]() };
  await refused(changing, { code: 'state-invalid', message: /second/ }, percentile);
  const group = tensorOf('int16', {});
  await refused(whole, { code: 'format-unsupported', message: /int16/ }, configOf({ input_tensors: group }));
  const columns = configOf({ input_tensors: tensorOf('int8', { qscheme: 'per_channel', ch_axis: 0 }) });
  await assert.rejects(quantized(quantizer, model, columns, whole, 'quark'), {
    code: 'shape-mismatch',
    message: /ch_axis/,
  });
  assert.equal(quantizer.liveObjects, 1);
});

test('streams and generators are closed when a run fails or is aborted; half floats are taken', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const inputs = whole.filter(({ role }) => role === 'input');
  const streamed = await quantized(quantizer, model, config, ReadableStream.from(inputs));
  assert.deepEqual(streamed.bytes, (await quantized(quantizer, model, config, new Set(inputs))).bytes);
  const bf16 = inputs.map(({ data, ...rest }) => {
    const words = new Uint32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    return { ...rest, dtype: 'BF16', data: Uint16Array.from(words, (word) => word >>> 16) };
  });
  const widened = bf16.map(({ data, dtype: _, ...rest }) => {
    const words = Uint32Array.from(data, (half) => half << 16);
    return { ...rest, data: new Float32Array(words.buffer) };
  });
  const [halves, floats32] = [
    await quantized(quantizer, model, config, bf16),
    await quantized(quantizer, model, config, widened),
  ];
  assert.deepEqual(halves.bytes, floats32.bytes);

  let closed = 0;
  const guarded = async function* (batches, stop) {
    try {
      yield* batches;
      stop?.abort(new Error('enough'));
      yield inputs[0];
    } finally {
      closed += 1;
    }
  };
  const folder = scratchFolder(t);
  const failing = guarded([inputs[0], { ...inputs[1], layer: 'nothing' }]);
  await assert.rejects(quantizer.quantizeModel(model, config, { target: join(folder, 'out'), calibration: failing }));
  assert.equal(closed, 1);
  const stop = new AbortController();
  const options = { target: join(folder, 'out'), calibration: guarded(inputs, stop), signal: stop.signal };
  await assert.rejects(quantizer.quantizeModel(model, config, options), { message: 'enough' });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(closed, 2);
  assert.deepEqual(readdirSync(folder), []);
  assert.equal(quantizer.liveObjects, 1);
});

test('without calibration, and where a format has no place, static scales are left out and this is said', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel(t));
  const config = configOf({ input_tensors: tensorOf('int8') });
  const codes = ({ diagnostics }) => diagnostics.map(({ code }) => code);
  const { report } = await quantized(quantizer, model, config, undefined);
  assert.ok(codes(report).includes('not-applied'));
  const fake = await quantized(quantizer, model, config, whole, 'fake-quantized');
  assert.ok(codes(fake.report).includes('not-applied') && codes(fake.report).includes('calibration-unused'));
  const plain = await quantized(quantizer, model, configOf({}), whole);
  assert.ok(codes(plain.report).includes('calibration-unused'));
  const partly = await quantized(quantizer, model, config, whole);
  assert.match(partly.report.diagnostics.find(({ code }) => code === 'calibration-unused').message, /^2 batches/);
});

test('tokens give the same ranges that PyTorch found, for the head too', async (t) => {
  const statistics = readTensors(join(reference, 'calib_stats.safetensors'));
  const files = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const tokens = await modelFor(t, quantizer, join(reference, 'calib_tokens.safetensors'));
    const config = { global_quant_config: { weight, input_tensors: tensorOf('int8') } };
    const { bytes, tensor } = await quantized(quantizer, model, config, { tokens });
    files.push(bytes);
    let count = 0;
    for (const [name, { data }] of statistics) {
      if (!name.endsWith('.input_absmax')) continue;
      const expected = Math.max(...data) / 127.5;
      const [scale] = tensor(name.replace('absmax', 'scale')).data;
      assert.ok(Math.abs(scale - expected) < 1e-3 * expected, `${name}: ${scale}, expected ${expected}`);
      count += 1;
    }
    assert.equal(count, 29);
    const output = configOf({ output_tensors: tensorOf('int8') });
    await assert.rejects(quantized(quantizer, model, output, { tokens }), { message: /outputs of model\.layers\.0/ });
  }
  assert.deepEqual(files[0], files[1]);
});

test('static inputs go together with gptq on the same tokens; smoothed layers have other inputs', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const { data } = readTensors(join(reference, 'calib_tokens.safetensors')).get('input_ids');
  const tokens = { data: Int32Array.from(data.subarray(0, 512)), shape: [2, 256] };
  const config = { ...configOf({ input_tensors: tensorOf('int8') }), algo_config: [{ name: 'gptq' }] };
  const { tensor } = await quantized(quantizer, model, config, { tokens });
  assert.ok(tensor('model.layers.0.mlp.up_proj.input_scale').data[0] > 0);
  const smooth = { ...config, pre_quant_opt_config: [{ name: 'smoothquant' }] };
  const { report } = await quantized(quantizer, model, smooth, { tokens });
  assert.ok(report.diagnostics.some(({ code }) => code === 'not-applied'));
});

test('weighted observers lower the error of what the layer computes', async (t) => {
  const path = smallModel(t);
  const outputs = [];
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, path);
    const inputs = whole
      .filter(({ role }) => role === 'input')
      .map((batch) => {
        // A few loud channels, as activations have them.
        const columns = batch.shape[1];
        return { ...batch, data: batch.data.map((value, i) => ((i % columns) % 7 === 3 ? value * 30 : value)) };
      });
    const int3 = { dtype: 'int3', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
    const noise = async (spec, format, calibration) => {
      const config = configOf({ weight: spec });
      const { tensor, bytes } = await quantized(quantizer, model, config, calibration, format);
      outputs.push(Buffer.from(bytes));
      let sum = 0;
      const original = readTensors(path);
      for (const { layer, data, shape } of inputs) {
        const power = Array.from({ length: shape[1] }, (_, c) =>
          data.reduce((all, value, i) => (i % shape[1] === c ? all + value * value : all), 0),
        );
        const changed = tensor(`${layer}.weight`).data;
        original.get(`${layer}.weight`).data.forEach((value, i) => {
          sum += (value - changed[i]) ** 2 * power[i % shape[1]];
        });
      }
      return sum;
    };
    const search = (observer_cls, weighted, rest = {}) => ({
      ...int3,
      ...rest,
      observer_cls,
      ...(weighted && { observer_options: { weighted: true } }),
    });
    const groups = { qscheme: 'per_group', group_size: 8, ch_axis: -1 };
    for (const [observer, rest] of [['PerChannelMSEObserver'], ['PerGroupMSEObserver', groups]]) {
      const plain = await noise(search(observer, false, rest), 'fake-quantized');
      const weighed = await noise(search(observer, true, rest), 'fake-quantized', inputs);
      assert.ok(weighed < plain, `${observer}: ${weighed} weighted, ${plain} not`);
    }
    // Codes in transposed groups, and values, are chosen by the same scales.
    const int4 = configOf({ weight: { ...search('PerGroupMSEObserver', true, groups), dtype: 'int4' } });
    const [codes, values] = await Promise.all(
      ['quark', 'fake-quantized'].map((format) => quantized(quantizer, model, int4, inputs, format)),
    );
    for (const [i, { error, name }] of codes.report.tensors.entries()) {
      const other = values.report.tensors[i].error;
      if (error) assert.ok(Math.abs(error.mse / other.mse - 1) < 1e-6, `${name}: ${error.mse} and ${other.mse}`);
    }
    const config = configOf({ weight: search('PerChannelMSEObserver', true) });
    const fake = (calibration) => quantized(quantizer, model, config, calibration, 'fake-quantized');
    await assert.rejects(fake(), { code: 'argument-invalid', message: /weighted/ });
    await assert.rejects(fake(inputs.slice(1)), { message: /mlp\.up_proj\.input/ });
    const problems = quantizer.checkConfig(configOf({ weight: search('PerChannelMinMaxObserver', true) }));
    assert.ok(problems.some(({ where }) => where.endsWith('/weight/observer_options')));
  }
  const half = outputs.length / 2;
  for (let i = 0; i < half; ++i) assert.deepEqual(outputs[i], outputs[half + i]);
});

test('the command line decides by the tensors of the file', (t) => {
  const folder = scratchFolder(t);
  const cli = join(import.meta.dirname, '../../dist/cli.js');
  const activations = join(folder, 'activations.safetensors');
  writeFloats(activations, new Map(whole.map((batch) => [`${batch.layer}.${batch.role}`, batch])));
  const config = join(folder, 'config.json');
  const run = (...args) =>
    execFileSync(process.execPath, [cli, 'quantize', ...args, '--json'], {
      input: JSON.stringify(configOf({ input_tensors: tensorOf('int8') })),
    });
  run(smallModel(t), '-o', join(folder, 'small'), '-c', '-', '--calibration', activations);
  assert.ok(readTensors(join(folder, 'small/model.safetensors')).has('mlp.up_proj.input_scale'), config);
  run(tinyLlama, '-o', join(folder, 'llama'), '-c', '-', '--calibration', join(reference, 'calib_tokens.safetensors'));
  const stored = readTensors(join(folder, 'llama/model.safetensors'));
  assert.ok(stored.has('model.layers.3.mlp.down_proj.input_scale'));
});
