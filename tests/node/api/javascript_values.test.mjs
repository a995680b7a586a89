// Values of JavaScript that JSON does not have, at every place of every argument that the core reads as JSON: those with a plain meaning
// give what their plain form gives, the others are refused where they stand. Nothing is dropped in silence.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import {
  dynamicInput,
  microscaling,
  nvfp4,
  perChannel,
  perGroup,
  perTensor,
  QuantizationError,
  quarkConfig,
} from '../../../dist/node.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const spec = { dtype: 'uint4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: false };
const config = {
  global_quant_config: { weight: spec },
  layer_quant_config: { '*.q_proj': { weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 } } },
  algo_config: [{ name: 'gptq', damp_percent: 0.02 }],
  exclude: ['lm_head', '*.down_proj'],
};
const aihwkit = {
  dialect: 'aihwkit',
  module_qconfig_map: { Linear: { module_qconfig: { weight_quant: { n_bits: 8, symmetric: true } } } },
  excluded_modules: ['lm_head'],
};
const tensor = { data: Float32Array.from({ length: 64 }, (_, i) => Math.cos(i)), shape: [2, 32] };

class Dictionary {
  constructor(fields) {
    Object.assign(this, fields);
  }
  method() {}
}
class Computed {
  #fields;
  constructor(fields) {
    this.#fields = fields;
    const [first] = Object.keys(fields);
    if (first !== undefined) this[first] = fields[first];
    for (const key of Object.keys(fields).slice(1))
      Object.defineProperty(Object.getPrototypeOf(this), key, { get: () => this.#fields[key], configurable: true });
  }
}
/** A class of its own for each object, whose getters read all fields but the first. */
const computed = (fields) => new (class extends Computed {})(fields);
const elsewhere = vm.createContext({});
const ofAnotherRealm = (name, value) => new (vm.runInContext(name, elsewhere))(value);

const isDictionary = (value) => Object.getPrototypeOf(value ?? 0) === Object.prototype;

/** Other forms of a plain value: they mean the same. */
const formsOf = (value) =>
  Object.entries({
    ...(isDictionary(value) && {
      'a Map': new Map(Object.entries(value)),
      'a Map of another realm': ofAnotherRealm('Map', Object.entries(value)),
      'an object of a class': new Dictionary(value),
      'an object without a prototype': Object.assign(Object.create(null), value),
      'an object that inherits': Object.assign(Object.create(value), value),
      'an object with toJSON': { toJSON: () => value },
      'an object with a field that is undefined': { ...value, no_such_key: undefined },
      'an object with getters': Object.defineProperties(
        {},
        Object.fromEntries(Object.keys(value).map((key) => [key, { enumerable: true, get: () => value[key] }])),
      ),
      'an object whose class has getters': computed(value),
      'a Proxy': new Proxy(value, {}),
    }),
    ...(Array.isArray(value) && {
      'a Set': new Set(value),
      'a Set of another realm': ofAnotherRealm('Set', value),
      'a list of another realm': vm.runInContext('Array', elsewhere).from(value),
      'a list with toJSON': Object.assign([], { toJSON: () => value }),
      ...(value.every(Number.isInteger) && {
        'a typed array': Int32Array.from(value),
        'a typed array of 64 bits': BigInt64Array.from(value, BigInt),
      }),
    }),
    ...(Number.isInteger(value) && { 'a BigInt': BigInt(value), 'a Number object': Object(value) }),
    ...(typeof value === 'string' && { 'a String object': Object(value) }),
    ...(typeof value === 'boolean' && { 'a Boolean object': Object(value) }),
  });

const circle = {};
circle.inside = circle;
let deep = 1;
for (let i = 0; i < 80; ++i) deep = [deep];
const detached = new Uint8Array(8);
structuredClone(detached.buffer, { transfer: [detached.buffer] });

/** What means nothing anywhere in JSON. */
const strange = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
  'a large BigInt': 2n ** 80n,
  'a symbol': Symbol('s'),
  'a function': () => 1,
  'a class': Dictionary,
  'a Date': new Date(0),
  'a RegExp': /x/,
  'a Promise': Promise.resolve({}),
  'a WeakMap': new WeakMap(),
  'an Error': new Error('x'),
  'an ArrayBuffer': new ArrayBuffer(8),
  'a Blob': new Blob(['x']),
  'a generator': (function* () {})(),
  'a Map with other keys': new Map([[{}, 1]]),
  'a dictionary with a symbol as key': { [Symbol('s')]: 1 },
  'a list with a hole': new Array(2),
  'a list with undefined': ['x', undefined],
  'a list with NaN': new Float32Array([Number.NaN]),
  'an object that holds itself': circle,
  'a list that is nested too deep': deep,
  'a typed array without memory': detached,
  'a getter that throws': {
    get weight() {
      throw new TypeError('no');
    },
  },
  'toJSON that gives nothing': { toJSON: () => undefined },
};

/** `[pointer, value, with]` of every place in a plain value; `with(other)`: a copy that has `other` there. */
function* placesOf(value, pointer = '') {
  yield [pointer, value, (other) => other];
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const [key, inner] of Object.entries(value))
    for (const [at, found, replaced] of placesOf(
      inner,
      `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    ))
      yield [
        at,
        found,
        (other) =>
          Array.isArray(value)
            ? value.map((own, i) => (String(i) === key ? replaced(other) : own))
            : { ...value, [key]: replaced(other) },
      ];
}

async function outcomeOf(call, value) {
  try {
    return { found: await call(value) };
  } catch (error) {
    assert.ok(error instanceof QuantizationError, error?.stack);
    return { code: error.code, where: error.where, message: error.message };
  }
}

/** `name`: what the error names at the root; `prefix`: in front of JSON pointers. `root`: whether the root is tried, too. */
async function tryAll(what, base, call, { name, prefix = name, root = true } = {}) {
  const right = await outcomeOf(call, base);
  assert.ok('found' in right, `${what}: ${right.message}`);
  for (const [pointer, value, replaced] of placesOf(base)) {
    if (pointer === '' && !root) continue;
    for (const [form, other] of formsOf(value)) {
      const found = await outcomeOf(call, replaced(other));
      assert.deepEqual(found, right, `${what}: ${form} at "${pointer}"`);
    }
    for (const [form, wrong] of Object.entries(strange)) {
      const found = await outcomeOf(call, replaced(wrong));
      assert.ok('code' in found, `${what}: ${form} at "${pointer}" is taken in silence`);
      const place = pointer === '' ? name : prefix + pointer;
      assert.equal(found.code, 'argument-invalid', `${what}: ${form} at "${pointer}": ${found.message}`);
      assert.ok(
        found.where === place || found.where.startsWith(`${prefix}${pointer}/`),
        `${found.where}, not ${place}`,
      );
    }
  }
}

const asConfig = { name: 'config', prefix: '' };
const asSpec = { name: 'spec', prefix: '' };

test('configs, wherever one is given', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const plain = { ...config, algo_config: [] };
  const planned = ({ tensors }) => tensors.map(({ name, spec: of, reason }) => [name, of, reason]);
  const names = ['model.layers.0.self_attn.q_proj.weight'];
  await tryAll('parseConfig', config, (given) => quantizer.parseConfig(given), asConfig);
  await tryAll('parseConfig of aihwkit', aihwkit, (given) => quantizer.parseConfig(given), asConfig);
  await tryAll('convertConfig', config, (given) => quantizer.convertConfig(given, 'quark'), asConfig);
  await tryAll('plan', config, async (given) => planned(await quantizer.plan(model, given)), asConfig);
  await tryAll('preview', plain, (given) => quantizer.preview(model, given, names), asConfig);
  const own = { global_quant_config: { weight: spec }, exclude: ['a'] };
  await tryAll('presetConfig', own, (given) => quantizer.presetConfig(given, { best: true }), asConfig);
  for (const [pointer, , replaced] of placesOf(config))
    for (const [form, wrong] of Object.entries(strange)) {
      const [found] = quantizer.checkConfig(replaced(wrong));
      assert.equal(found?.code, 'argument-invalid', `${form} at "${pointer}"`);
      const isThere = found.where === (pointer || 'config') || found.where.startsWith(`${pointer}/`);
      assert.ok(isThere, `${found.where}, not ${pointer}`);
    }
});

test('configs of runs, and of former runs', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const folder = scratchFolder(t);
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };
  const small = { global_quant_config: { weight }, exclude: ['*.mlp.*'] };
  const format = 'fake-quantized';
  const run = async (given, reuse) => {
    const target = { write: async () => new WritableStream() };
    const { tensors } = await quantizer.quantizeModel(model, given, { target, format, ...(reuse && { reuse }) });
    return tensors.map(({ name, error }) => [name, error]);
  };
  const report = await quantizer.quantizeModel(model, small, { target: folder, format, overwrite: true });
  const output = await modelFor(t, quantizer, folder);
  const form = (given) => ({ ...small, global_quant_config: { weight: given } });
  const place = { prefix: '/global_quant_config/weight', root: false };
  await tryAll('quantizeModel', weight, (given) => run(form(given)), place);
  await tryAll('reuse.config', weight, (given) => run(small, { config: form(given), output, report }), place);
});

test('specs, shapes and parts', async (t) => {
  const quantizer = await quantizerFor(t);
  const { codes, scale, zeroPoint, ...rest } = quantizer.quantize(tensor, spec);
  const observed = (given, values = tensor, part) => {
    const observer = quantizer.createObserver(given);
    observer.update(values, part);
    const found = observer.finish();
    observer[Symbol.dispose]();
    return found;
  };
  await tryAll('quantize', spec, (given) => quantizer.quantize(tensor, given), asSpec);
  await tryAll('fakeQuantize', spec, (given) => quantizer.fakeQuantize(tensor, given), asSpec);
  await tryAll('createObserver', spec, (given) => observed(given), asSpec);
  await tryAll(
    'dequantize',
    spec,
    (given) => quantizer.dequantize({ ...rest, codes, scale, zeroPoint, spec: given }),
    asSpec,
  );
  const asShape = { name: 'shape', prefix: 'shape' };
  await tryAll('the shape of quantize', [2, 32], (shape) => quantizer.quantize({ ...tensor, shape }, spec), asShape);
  await tryAll(
    'the shape of fakeQuantize',
    [2, 32],
    (shape) => quantizer.fakeQuantize({ ...tensor, shape }, spec),
    asShape,
  );
  await tryAll('the shape of update', [2, 32], (shape) => observed(spec, { ...tensor, shape }), asShape);
  const dequantized = (given) => quantizer.dequantize({ ...rest, codes, scale, zeroPoint, ...given });
  await tryAll('the shape of dequantize', [2, 32], (shape) => dequantized({ shape }), asShape);
  await tryAll('scaleShape of dequantize', rest.scaleShape, (scaleShape) => dequantized({ scaleShape }), asShape);
  await tryAll('the shape of a part', [4, 32], (shape) => observed(spec, tensor, { batch: 0, shape }), asShape);
});

test('what builders are given', async (t) => {
  const quantizer = await quantizerFor(t);
  const rest = { symmetric: true, round_method: 'half_even' };
  const asRest = { name: 'rest' };
  for (const build of [perTensor, perChannel]) await tryAll(build.name, rest, (given) => build('int8', given), asRest);
  await tryAll('perGroup', rest, (given) => perGroup('int4', 32, given), asRest);
  await tryAll('microscaling', rest, (given) => microscaling('fp4', given), asRest);
  await tryAll('nvfp4', rest, (given) => nvfp4(given), asRest);
  const parts = {
    exclude: ['lm_head'],
    layers: { 'a.*': { dtype: 'int8' } },
    layerTypes: { Embedding: { weight: { dtype: 'int8' } } },
    inputs: dynamicInput('int8'),
  };
  await tryAll('quarkConfig', parts, (given) => quarkConfig(spec, given), { name: 'parts' });
  for (const key of ['layers', 'layerTypes']) {
    const map = { '*.q_proj': 'int8', '*.k_proj': { weight: { dtype: 'int4' } } };
    await tryAll(`presetConfig, ${key}`, map, (given) => quantizer.presetConfig('int4_wo_32', { [key]: given }), {
      name: key,
      root: false,
    });
  }
});

test('candidates of autoConfig', async (t) => {
  const quantizer = await quantizerFor(t);
  const language = quantizer.languageModel(await modelFor(t, quantizer, tinyLlama));
  const calibration = { tokens: { data: [1, 2, 3, 4], shape: [1, 4] } };
  const candidate = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 };
  const call = async (given) =>
    (await language.autoConfig({ targetBits: 8.5, calibration, candidates: [given] })).config;
  await tryAll('autoConfig', candidate, call, { name: 'candidates/0' });
});

test('options that are no plain object, and options that are NaN', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const language = quantizer.languageModel(model);
  const target = { write: async () => new WritableStream() };
  const calls = {
    open: (given) => quantizer.open(tinyLlama, given),
    parseConfig: (given) => quantizer.parseConfig('int8', given),
    presetConfig: (given) => quantizer.presetConfig('int8', given),
    plan: (given) => quantizer.plan(model, 'int8', given),
    'plan, gguf': (gguf) => quantizer.plan(model, 'q8_0', { gguf }),
    'plan, onnx': (onnx) => quantizer.plan(model, 'int8', { onnx }),
    quantizeModel: (given) => quantizer.quantizeModel(model, 'int8', given),
    'quantizeModel, shards': (shards) => quantizer.quantizeModel(model, 'int8', { target, shards }),
    compare: (given) => quantizer.compare(model, model, given),
    distribution: (given) => quantizer.distribution(model, model, 'model.norm.weight', given),
    preview: (given) => quantizer.preview(model, 'int8', [], given),
    curve: (given) => quantizer.curve(model, given),
    languageModel: (given) => quantizer.languageModel(model, given),
    mergeShards: (given) => quantizer.mergeShards('x', given),
    evaluate: (given) => language.evaluate(given),
    embeddings: (given) => language.embeddings(given),
    generate: (given) => language.generate(given),
    autoConfig: (given) => language.autoConfig(given),
    importance: (given) => language.importance(given),
  };
  const wrong = {
    'a Map': new Map([['overwrite', true]]),
    'a Set': new Set(['overwrite']),
    'a Date': new Date(),
    'a Promise': Promise.resolve({}),
    'a list': [],
    'a typed array': new Uint8Array(0),
    'a function': () => ({}),
  };
  for (const [name, call] of Object.entries(calls))
    for (const [form, given] of Object.entries(wrong)) {
      const { code } = await outcomeOf(call, given);
      assert.equal(code, 'argument-invalid', `${name}: ${form} as options`);
    }
  const counts = {
    bins: (bins) => quantizer.distribution(model, model, 'model.norm.weight', { bins }),
    shardBytes: (shardBytes) => quantizer.plan(model, 'q8_0', { gguf: { shardBytes } }),
    accuracyLevel: (accuracyLevel) => quantizer.plan(model, 'int8', { onnx: { accuracyLevel } }),
    windows: (windows) => quantizer.curve(model, { windows }),
    bytesPerToken: (bytesPerToken) => language.evaluate({ tokens: { data: [1, 2], shape: [1, 2] }, bytesPerToken }),
    count: (count) => language.generate({ tokens: [1, 2], count }),
    targetBits: (targetBits) => language.autoConfig({ targetBits, calibration: { tokens: { rows: [[1, 2]] } } }),
  };
  for (const [name, call] of Object.entries(counts))
    for (const number of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const { code, where } = await outcomeOf(call, number);
      assert.equal(code, 'argument-invalid', `${name}: ${number}`);
      assert.match(where, new RegExp(`${name}$`));
    }
});
