// The API surface: exports, versions, errors, imports of the shipped files.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import * as browserEntry from '../../../dist/index.js';
import * as nodeEntry from '../../../dist/node.js';
import { quantizerFor } from '../scratch.mjs';

const root = join(import.meta.dirname, '../../..');

test('both entries export the same names', () => {
  const names = [
    'QuantizationError',
    'aihwkitConfig',
    'brevitasConfig',
    'coreErrorCodes',
    'createQuantizer',
    'dynamicInput',
    'inputFormats',
    'isQuantizationError',
    'libraryErrorCodes',
    'microscaling',
    'nvfp4',
    'outputFormats',
    'perChannel',
    'perGroup',
    'perTensor',
    'planJson',
    'planOf',
    'progressive',
    'quarkConfig',
    'readTextFile',
  ];
  assert.deepEqual(Object.keys(browserEntry).sort(), names);
  assert.deepEqual(Object.keys(nodeEntry).sort(), names);
});

test('a quantizer has every member of the design', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const name of [
    'presets',
    'checkConfig',
    'parseConfig',
    'convertConfig',
    'quantize',
    'dequantize',
    'fakeQuantize',
    'createObserver',
    'open',
    'plan',
    'quantizeModel',
    'compare',
    'curve',
    'mergeShards',
    'languageModel',
    Symbol.asyncDispose,
  ]) {
    assert.equal(typeof quantizer[name], 'function', String(name));
  }
  const model = await quantizer.open(join(root, 'tests/files/tiny-llama'));
  const language = quantizer.languageModel(model);
  for (const name of ['evaluate', 'generate', 'autoConfig', 'importance'])
    assert.equal(typeof language[name], 'function', name);
  assert.throws(() => quantizer.languageModel({}), { code: 'argument-invalid', where: 'model' });
  assert.throws(() => quantizer.languageModel(model, { source: {} }), { code: 'argument-invalid', where: 'source' });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(quantizer.version.library, version);
  assert.match(quantizer.version.compiler, /clang/i);
});

test('output formats are those that the core names, in order', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await quantizer.open(join(root, 'tests/files/tiny-llama'));
  const config = { global_quant_config: {} };
  await assert.rejects(
    () => quantizer.plan(model, config, { format: 'none' }),
    ({ message }) => {
      const [, names] = /choose one of (.*)$/.exec(message);
      assert.deepEqual(names.split(/, | and /), [...nodeEntry.outputFormats]);
      return true;
    },
  );
  await model.close();
});

test('checkConfig never throws and gives all problems at once', async (t) => {
  const quantizer = await quantizerFor(t);
  const circular = {};
  circular.self = circular;
  for (const config of ['{', '', 'no-such-preset', null, undefined, 7, circular, [], '[]']) {
    const found = quantizer.checkConfig(config);
    assert.ok(
      found.some(({ severity }) => severity === 'error'),
      String(config),
    );
  }
  assert.equal(quantizer.checkConfig({}, { dialect: 'latin' })[0].severity, 'error');
  const two = { global_quant_config: { weight: { dtype: 'int99', qscheme: 'per_tensor' } }, no_such_key: 1 };
  const found = quantizer.checkConfig(two);
  assert.ok(found.some(({ where }) => where.startsWith('/global_quant_config/weight')));
  assert.ok(found.some(({ where }) => where.includes('no_such_key')));
});

test('parseConfig throws config-invalid with diagnostics', async (t) => {
  const quantizer = await quantizerFor(t);
  assert.throws(
    () => quantizer.parseConfig({ global_quant_config: { weight: { dtype: 'int99' } } }),
    (error) =>
      error instanceof nodeEntry.QuantizationError && error.code === 'config-invalid' && error.diagnostics.length > 0,
  );
});

test('errors are told from others by name and code, also those of another copy of the library', async () => {
  const { isQuantizationError, QuantizationError } = nodeEntry;
  const error = new QuantizationError({ code: 'target-exists', detail: 'is there' });
  class Other extends Error {
    name = 'QuantizationError';
    code = 'target-exists';
  }
  for (const one of [error, new Other()])
    assert.deepEqual(
      [isQuantizationError(one), isQuantizationError(one, 'target-exists'), isQuantizationError(one, 'read-failed')],
      [true, true, false],
    );
  for (const other of [null, undefined, 'target-exists', new TypeError('x'), { ...error }])
    assert.equal(isQuantizationError(other), false);
});

test('options are checked', async () => {
  await assert.rejects(nodeEntry.createQuantizer({ threads: -1 }), { code: 'argument-invalid', where: 'threads' });
  await assert.rejects(nodeEntry.createQuantizer({ threads: 1.5 }), { code: 'argument-invalid' });
  await assert.rejects(nodeEntry.createQuantizer({ memoryBudgetBytes: 1024 }), { code: 'memory-budget' });
  await assert.rejects(nodeEntry.createQuantizer({ wasmUrl: '/no/such/file.wasm' }), {
    code: 'engine-unavailable',
    where: '/no/such/file.wasm',
  });
});

test('a compiled module can be passed', async (t) => {
  const wasmModule = await WebAssembly.compile(readFileSync(join(root, 'dist/wasmquant.wasm')));
  const quantizer = await quantizerFor(t, { threads: 0, wasmModule });
  assert.ok(quantizer.presets().length > 0);
});

test('a disposed quantizer refuses every call', async (t) => {
  const quantizer = await quantizerFor(t);
  await quantizer[Symbol.asyncDispose]();
  assert.throws(() => quantizer.presets(), { code: 'state-invalid' });
  await assert.rejects(quantizer.open(new Uint8Array(8)), { code: 'state-invalid' });
});

test('the library imports only its own files and node:', () => {
  const dist = join(root, 'dist');
  const library = readdirSync(join(root, 'web/lib'), { recursive: true }).filter((name) => /(?<!\.d)\.ts$/.test(name));
  assert.ok(library.length > 20);
  for (const name of library) {
    const file = name.replace(/\.ts$/, '.js');
    const text = readFileSync(join(dist, file), 'utf8');
    for (const [, from] of text.matchAll(/(?:^|\n)\s*(?:import|export)[^'"\n]*?from\s*['"]([^'"]+)['"]/g)) {
      assert.match(from, /^(\.\.?\/|node:)/, `${file} imports ${from}`);
    }
  }
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(dependencies, undefined);
});

test('files that browsers load do not import node:', () => {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file) || file === 'engine.js') return;
    seen.add(file);
    const text = readFileSync(join(root, 'dist', file), 'utf8');
    assert.doesNotMatch(text, /from ['"]node:/, file);
    for (const [, next] of text.matchAll(/from ['"](\.[^'"]+)['"]/g)) visit(join(dirname(file), next));
  };
  visit('index.js');
  visit('worker/worker.js');
  assert.ok(seen.size > 15);
});
