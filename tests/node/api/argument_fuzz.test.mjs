// Wrong arguments: of any public function, whatever one of them is replaced by, only a QuantizationError comes out, and the
// quantizer works afterwards as before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inputFormatOf, outputFormatsOf } from '../../../dist/internal.js';
import {
  aihwkitConfig,
  brevitasConfig,
  perGroup,
  planJson,
  planOf,
  QuantizationError,
  quarkConfig,
} from '../../../dist/node.js';
import { captureActivations } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const circular = {};
circular.self = circular;

/** Values that no argument is. */
const junk = {
  null: null,
  true: true,
  0: 0,
  '-1': -1,
  1.5: 1.5,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '2^53': 2 ** 53,
  'an empty string': '',
  'a string': 'x',
  'a long string': 'x'.repeat(5000),
  'half a surrogate pair': '\ud800',
  'a symbol': Symbol('s'),
  'a bigint': 5n,
  'an empty list': [],
  'a list': [1, 'two', null],
  'a sparse list': new Array(3),
  'an empty object': {},
  'an object without a prototype': Object.create(null),
  'a circular object': circular,
  'an object whose toJSON gives nothing': { toJSON: () => undefined },
  'an object whose toJSON throws no error': {
    toJSON() {
      throw Object.create(null);
    },
  },
  'a function': () => 1,
  'a date': new Date(0),
  'a map': new Map([[1, 2]]),
  bytes: new Uint8Array(3),
  floats: new Float32Array(2),
  doubles: new Float64Array(2),
  'an array buffer': new ArrayBuffer(4),
};

/** A safetensors file of two small layers. */
function smallModel() {
  const data = Float32Array.from({ length: 2 * 64 }, (_, i) => Math.sin(i));
  const entry = (begin) => ({ dtype: 'F32', shape: [4, 16], data_offsets: [begin, begin + 256] });
  const header = Buffer.from(JSON.stringify({ 'a.weight': entry(0), 'b.weight': entry(256) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return new Uint8Array(Buffer.concat([length, header, Buffer.from(data.buffer)]));
}

/** Copies of `values` with one of them, or one inside, replaced by `wrong`; `[where, copy]`. */
function* replaced(values, wrong, depth = 3) {
  const keys = Object.keys(values);
  const copyWith = (key, value) =>
    Array.isArray(values) ? values.map((v, i) => (String(i) === key ? value : v)) : { ...values, [key]: value };
  for (const key of keys) {
    yield [key, copyWith(key, wrong)];
    const inner = values[key];
    const isPlain = Array.isArray(inner) || Object.getPrototypeOf(inner ?? 0) === Object.prototype;
    if (depth > 1 && isPlain)
      for (const [where, copy] of replaced(inner, wrong, depth - 1)) yield [`${key}.${where}`, copyWith(key, copy)];
  }
  if (!Array.isArray(values)) yield ['notAnOption', { ...values, notAnOption: wrong }];
}

/** Calls with every argument wrong in every way; a call that has nothing against it may succeed. */
async function attack(name, args, call) {
  let [refused, calls] = [0, 0];
  for (const [what, wrong] of Object.entries(junk))
    for (const [where, copy] of replaced(args, wrong)) {
      if (where.endsWith('count') && typeof wrong === 'number' && wrong > 1) continue; // right, and long
      calls += 1;
      try {
        await call(...copy);
      } catch (error) {
        const said = `${name}, ${where} is ${what}: ${error?.stack ?? String(error)}`;
        assert.ok(error instanceof QuantizationError, said);
        assert.notEqual(error.code, 'engine-crashed', said);
        assert.notEqual(error.code, 'worker-crashed', said);
        refused += 1;
      }
    }
  assert.ok(refused > calls / 10, `${name}: ${refused} of ${calls} calls were refused`);
}

const spec = { dtype: 'uint8', qscheme: 'per_channel', ch_axis: 0, symmetric: false };
const tensor = { data: Float32Array.from({ length: 32 }, (_, i) => Math.cos(i)), shape: [4, 8], dtype: 'F32' };
const config = { global_quant_config: { weight: spec } };

async function works(quantizer) {
  assert.equal(quantizer.quantize(tensor, spec).codes.length, 32);
  const model = await quantizer.open(smallModel());
  assert.equal((await quantizer.plan(model, config)).totals.quantized, 2);
  await model.close();
}

test('tensors, specs and observers', async (t) => {
  const quantizer = await quantizerFor(t);
  const two = [
    { dtype: 'fp8_e4m3', qscheme: 'per_tensor' },
    { dtype: 'int4', ...spec, symmetric: true },
  ];
  two[1].dtype = 'int4';
  for (const each of [spec, two]) {
    await attack('quantize', [tensor, each], (...args) => quantizer.quantize(...args));
    await attack('fakeQuantize', [tensor, each], (...args) => quantizer.fakeQuantize(...args));
    const quantized = quantizer.quantize(tensor, each);
    await attack('dequantize', [quantized], (...args) => quantizer.dequantize(...args));
  }
  const mx6 = quantizer.quantize(tensor, { dtype: 'mx6' });
  await attack('dequantize', [mx6], (...args) => quantizer.dequantize(...args));
  const part = { batch: 1, shape: [8, 8], offset: 3 };
  await attack('observer', [spec, tensor, part], (given, values, place) => {
    const observer = quantizer.createObserver(given);
    try {
      observer.update(values, place);
      observer.merge(observer);
      observer.finish();
    } finally {
      observer[Symbol.dispose]();
    }
  });
  const observer = quantizer.createObserver(spec);
  await attack('merge', [quantizer.createObserver(spec)], (other) => observer.merge(other));
  await works(quantizer);
});

test('configs, and plans as JSON', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, smallModel());
  const dialect = { dialect: 'quark' };
  await attack('parseConfig', [config, dialect], (...args) => quantizer.parseConfig(...args));
  await attack('convertConfig', [config, 'brevitas'], (...args) => quantizer.convertConfig(...args));
  for (const wrong of Object.values(junk))
    for (const [, args] of replaced([config, dialect], wrong)) {
      const found = quantizer.checkConfig(...args); // never throws
      assert.ok(Array.isArray(found));
    }
  const options = {
    format: 'gguf',
    gguf: { imatrixName: 'm', shardBytes: 100 },
    onnx: { qdq: true },
    includeTowers: true,
  };
  await attack('plan', [model, 'q8_0', options], (...args) => quantizer.plan(...args));
  const plan = await quantizer.plan(model, config);
  await attack('planJson', [plan], (given) => planJson(given));
  await attack('planOf', [planJson(plan)], (given) => planOf(given));
  for (const wrong of Object.values(junk)) {
    for (const pure of [inputFormatOf, outputFormatsOf])
      try {
        pure(wrong);
      } catch (error) {
        assert.ok(error instanceof QuantizationError, `${pure.name}: ${error.stack}`);
      }
    for (const build of [quarkConfig, brevitasConfig, aihwkitConfig, (given) => quarkConfig(perGroup('int4'), given)])
      try {
        build(wrong);
      } catch (error) {
        assert.ok(error instanceof QuantizationError, `${build.name}: ${error.stack}`);
      }
  }
  await works(quantizer);
});

test('models and runs', async (t) => {
  // Any text is a path, and a target.
  const before = process.cwd();
  process.chdir(scratchFolder(t));
  t.after(() => process.chdir(before));
  const quantizer = await quantizerFor(t);
  const bytes = smallModel();
  const source = {
    size: bytes.length,
    name: 'm.safetensors',
    read: async (at, count) => bytes.subarray(at, at + count),
  };
  const opened = async (...args) => (await quantizer.open(...args)).close();
  await attack('open', [source, { format: 'safetensors' }], opened);
  await attack('open', [[bytes], { format: 'safetensors' }], opened);
  const model = await modelFor(t, quantizer, bytes);
  const target = { write: async () => new WritableStream() };
  const report = await quantizer.quantizeModel(model, config, { target });
  const options = {
    target,
    format: 'fake-quantized',
    signal: new AbortController().signal,
    onProgress() {},
    overwrite: true,
  };
  await attack('quantizeModel', [model, config, options], (...args) => quantizer.quantizeModel(...args));
  const more = {
    target,
    shards: { part: 1, of: 2 },
    resume: false,
    calibration: [],
    reuse: { config, output: model, report },
  };
  await attack('quantizeModel', [model, config, more], (...args) => quantizer.quantizeModel(...args));
  const watched = { signal: new AbortController().signal, onProgress() {} };
  await attack('compare', [model, model, watched], (...args) => quantizer.compare(...args));
  const bins = { bins: 20, signal: watched.signal };
  await attack('distribution', [model, model, 'a.weight', bins], (...args) => quantizer.distribution(...args));
  await attack('preview', [model, config, ['a.weight'], { format: 'quark' }], (...args) => quantizer.preview(...args));
  await attack('mergeShards', ['no such folder', { overwrite: true }], (...args) => quantizer.mergeShards(...args));
  await attack('languageModel', [model, { source: model }], (...args) => quantizer.languageModel(...args));
  await attack('siblingFile', ['tokenizer.json'], (name) => model.siblingFile(name)).catch(() => {});
  await works(quantizer);
});

test('language models', async (t) => {
  const quantizer = await quantizerFor(t);
  const language = quantizer.languageModel(await modelFor(t, quantizer, tinyLlama));
  const tokens = { data: [1, 2, 3, 4], shape: [1, 4] };
  const tokenizer = { encode: (text) => [...text].map((letter) => letter.charCodeAt(0) % 32), decode: () => '' };
  const text = { text: 'a few words of a text', tokenizer, length: 4, sequences: 1 };
  const { signal } = new AbortController();
  await attack('evaluate', [{ tokens, bytesPerToken: 4, activations: 'float32', signal }], (o) => language.evaluate(o));
  await attack('evaluate', [{ tokens: text }], (o) => language.evaluate(o));
  await attack('generate', [{ text: 'a text', tokenizer, count: 1, onProgress() {} }], (o) => language.generate(o));
  await attack('generate', [{ tokens: [1, 2], count: 1 }], (o) => language.generate(o));
  const budget = { targetBits: 1, calibration: { tokens, tensor: 'x' }, candidates: [spec], exclude: ['a'] }; // too few bits
  await attack('autoConfig', [budget], (o) => language.autoConfig(o));
  await attack('importance', [{ calibration: { tokens }, format: 'dat', dataset: 'd', signal }], (o) =>
    language.importance(o),
  );
  await works(quantizer);
});

test('activations of ONNX models', async () => {
  const runtime = { InferenceSession: { create: async () => ({ run: async () => ({}), release: async () => {} }) } };
  const first = async (...args) => {
    for await (const batch of captureActivations(...args)) return batch;
  };
  await attack('captureActivations', [runtime, smallModel(), [{}], { valuesPerRun: 1, sessionOptions: {} }], first);
});
